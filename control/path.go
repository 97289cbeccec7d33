package control

import (
	"encoding/json"

	"memoryfs/audit"
)

// Path is a path, or a name, of any bytes. In JSON it stands as audit.Quote writes it, so that bytes that are no UTF-8
// arrive as they were sent.
type Path string

// MarshalJSON quotes.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal(audit.Quote(string(p))) }

// UnmarshalJSON unquotes.
func (p *Path) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	raw, err := audit.Unquote(s)
	*p = Path(raw)
	return err
}

// String is for people: quoted, so that no name can play tricks on a terminal.
func (p Path) String() string { return audit.Quote(string(p)) }
