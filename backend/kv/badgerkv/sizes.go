package badgerkv

import (
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"memoryfs/backend/kv"
)

// One set of sizes for every volume, small enough for a 64 MiB one and for a daemon of 300 MB: at most three memtables
// of about 10 MiB are in memory (one written, one queued, one being flushed), and as many logs on disk.
const (
	memtableSize = 8 << 20 // bytes; a transaction may hold 15 % of it
	blockCache   = 24 << 20
	indexCache   = 8 << 20 // 400,000 keys have 2 MB of index and bloom filters
	vlogSize     = 16 << 20

	maxGroup = 64 // commits written with one fsync

	maxCommit = 1 << 20 // bytes of keys and values
	maxOps    = 1536
	// maxValue is 1 MiB less our revision and one byte: what Badger still keeps in the tables (ValueThreshold). So the
	// value log stays empty: values are compressed, and a delete needs no rewriting of a log.
	maxValue  = maxThreshold - revSize - 1
	maxKey    = 60_000 // bytes; Badger's own limit is 65,000 with our prefix
	maxGuards = 4096

	maxThreshold = 1 << 20 // Badger's upper limit of ValueThreshold

	// entryCost is what one entry is charged beyond its bytes. It covers the skip-list node (96 bytes, by which Badger
	// bounds the count of entries), the log's header and checksum (34 bytes), and the table's index.
	entryCost = 100
	// groupSlack is left of a transaction for the revision counter and Badger's end mark.
	groupSlack = 4 << 10
)

func caps() kv.Caps {
	return kv.Caps{MaxCommitBytes: maxCommit, MaxCommitOps: maxOps, MaxValueBytes: maxValue}
}

// memtableFor is memtableSize, or more if a log in dir was written with more: its replay must fit one memtable, else
// Badger exits. A log file is mapped at twice its memtable.
func memtableFor(dir string) int64 {
	size := int64(memtableSize)
	logs, _ := filepath.Glob(filepath.Join(dir, "*.mem")) // the pattern is valid
	for _, name := range logs {
		if fi, err := os.Stat(name); err == nil {
			size = max(size, fi.Size()/2)
		}
	}
	return size
}

func badgerOptions(dir string, memtable int64, l badger.Logger) badger.Options {
	return badger.DefaultOptions(dir).WithLogger(l).
		WithInMemory(dir == "").
		WithSyncWrites(true).
		WithDetectConflicts(false).
		WithNumVersionsToKeep(1).
		WithMemTableSize(memtable).
		WithNumMemtables(1).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(5).
		WithNumCompactors(2).
		WithValueThreshold(maxThreshold).
		WithValueLogFileSize(vlogSize).
		WithBlockCacheSize(blockCache).
		WithIndexCacheSize(indexCache).
		WithCompression(options.ZSTD).WithZSTDCompressionLevel(1).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithMetricsEnabled(false)
}
