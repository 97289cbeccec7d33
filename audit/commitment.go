package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Commitment binds a record to a content without telling it: hex HMAC-SHA256 of the content's hash under the version's
// salt, which lies beside the version. Erase the version, and the record says nothing any more.
func Commitment(salt [16]byte, sum [32]byte) string {
	m := hmac.New(sha256.New, salt[:])
	m.Write(sum[:])
	return hex.EncodeToString(m.Sum(nil))
}
