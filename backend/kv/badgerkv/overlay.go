package badgerkv

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"memoryfs/backend/kv"
)

// overlay is the published state with what the group has changed so far. Used by the committer only.
type overlay struct {
	db      *badger.DB
	txn     *badger.Txn
	changed map[string]change // by stored key
}

type change struct {
	rev   kv.Rev // 0: deleted
	value []byte // stored form
}

func newOverlay(db *badger.DB, rev kv.Rev) *overlay {
	return &overlay{db: db, txn: db.NewTransactionAt(uint64(rev), false), changed: map[string]change{}}
}

func (o *overlay) close() { o.txn.Discard() }

func (o *overlay) apply(writes []write, rev kv.Rev) {
	for _, w := range writes {
		if w.value == nil {
			o.changed[string(w.key)] = change{}
			continue
		}
		setRev(w.value, rev)
		o.changed[string(w.key)] = change{rev, w.value}
	}
}

func (o *overlay) holds(g kv.Guard) (bool, error) {
	if g.Kind == kv.GuardEmpty {
		return o.empty(g.Key)
	}
	rev, err := o.rev(g.Key)
	if err != nil {
		return false, err
	}
	if g.Kind == kv.GuardExists {
		return rev != 0, nil
	}
	return rev == g.Rev, nil
}

// rev is the revision of a stored key, 0 if it is absent.
func (o *overlay) rev(key []byte) (kv.Rev, error) {
	if c, ok := o.changed[string(key)]; ok {
		return c.rev, nil
	}
	return storedRev(o.txn, key)
}

func storedRev(txn *badger.Txn, key []byte) (rev kv.Rev, err error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	err = item.Value(func(b []byte) error {
		rev, err = revOf(b)
		return err
	})
	return rev, err
}

// empty scans only as far as the group has deleted what lies under the prefix.
func (o *overlay) empty(prefix []byte) (bool, error) {
	for k, c := range o.changed {
		if c.rev != 0 && bytes.HasPrefix([]byte(k), prefix) {
			return false, nil
		}
	}
	it := o.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
		if c, ok := o.changed[string(it.Item().Key())]; !ok || c.rev != 0 {
			return false, nil
		}
	}
	return true, nil
}

// write puts the group and the revision counter into Badger at one timestamp, and waits for the fsync. ErrTooLarge:
// nothing was sent. Any other error: ErrAmbiguous.
func (o *overlay) write(rev kv.Rev) error {
	txn := o.db.NewTransactionAt(uint64(rev), true)
	defer txn.Discard()
	counter := dbValue(nil)
	setRev(counter, rev)
	err := txn.Set(counterKey(), counter)
	for k, c := range o.changed {
		if err != nil {
			break
		}
		if c.rev == 0 {
			err = txn.Delete([]byte(k))
		} else {
			err = txn.Set([]byte(k), c.value)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", kv.ErrTooLarge, err) // keys and sizes were checked: only the sum can be refused
	}
	if err := txn.CommitAt(uint64(rev), nil); err != nil {
		return fmt.Errorf("%w: write of revision %d: %w", kv.ErrAmbiguous, rev, translate(err))
	}
	return nil
}
