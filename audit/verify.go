package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// Verify reads the whole log and compares it with the store. Every version has exactly one record, with a commitment to
// its content, and every record of a version has that version; sequences have no gap; an operation is recorded once;
// revisions grow. facts are the store's at revision upto: later records are not held against it. pending are intents
// that the log has not taken over yet: they count as records. What Replaced names counts as the record of that version.
// Reading goes on behind a bad line, so that one is not reported as many. The log may be written meanwhile. Memory: some
// 200 bytes a version.
func Verify(ctx context.Context, dir string, facts iter.Seq2[Fact, error], pending []Intent, upto uint64) (Report, error) {
	v := verifier{upto: upto, ids: map[string]uint32{}, recorded: map[versionKey]recorded{}, ops: map[uuid.UUID]uint64{}}
	w := walk{dir: dir, from: 1, line: func(_ []byte, r Record) error {
		v.report.Records++
		v.report.Last = r.Seq
		v.record(r)
		return nil
	}, bad: func(d *Damage) error {
		v.bad(d.Seq, "", d.Error())
		return nil
	}}
	if err := w.run(ctx); errors.Is(err, ErrDamaged) {
		v.bad(w.next, "", err.Error())
	} else if err != nil {
		return v.report, err
	}
	v.pending(pending)
	if err := v.compare(facts); err != nil {
		return v.report, err
	}
	v.left()
	v.keep()
	return v.report, nil
}

// maxProblems bounds a report.
const maxProblems = 1000

type versionKey struct {
	memory  uint32 // number of the memory
	version uint64
}

// recorded is what the log says of a version.
type recorded struct {
	commit   [32]byte // hash of the commitment's text
	seq      uint64   // 0: a pending intent
	replaced bool     // by another's record, which has no commitment to it
}

type verifier struct {
	report   Report
	ids      map[string]uint32 // memory by its id
	memories []string
	recorded map[versionKey]recorded
	ops      map[uuid.UUID]uint64
	rev      uint64
	upto     uint64
}

func (v *verifier) bad(seq uint64, memory, detail string) {
	v.report.Problems = append(v.report.Problems, Problem{Seq: seq, Memory: memory, Detail: detail})
	if len(v.report.Problems) >= 2*maxProblems {
		v.keep()
	}
}

// keep keeps the problems of the first records; those of no record come last.
func (v *verifier) keep() {
	p := v.report.Problems
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Compare(a.Seq-1, b.Seq-1) })
	if over := len(p) - maxProblems; over > 0 {
		v.report.More += over
		p = slices.Delete(p, maxProblems, len(p))
	}
	v.report.Problems = p
}

func (v *verifier) key(memory string, version uint64) versionKey {
	id, ok := v.ids[memory]
	if !ok {
		id = uint32(len(v.memories))
		v.ids[memory] = id
		v.memories = append(v.memories, memory)
	}
	return versionKey{id, version}
}

// record takes a change in.
func (v *verifier) record(r Record) {
	if r.Kind == "recover" && r.Op == "unreadable" {
		v.bad(r.Seq, "", "a record could not be made: "+r.Cause)
	}
	if r.Kind != "change" {
		return
	}
	op, err := uuid.Parse(r.OpID)
	if err != nil {
		v.bad(r.Seq, r.Memory, fmt.Sprintf("operation %q is no UUID", r.OpID))
	} else if before, twice := v.ops[op]; twice {
		v.bad(r.Seq, r.Memory, fmt.Sprintf("operation %s is recorded already by record %d", r.OpID, before))
	} else {
		v.ops[op] = r.Seq
	}
	if r.Rev <= v.rev {
		v.bad(r.Seq, r.Memory, fmt.Sprintf("revision %d comes after revision %d", r.Rev, v.rev))
	}
	v.rev = max(v.rev, r.Rev)
	if r.Rev > v.upto {
		return
	}
	if r.Version > 0 {
		v.version(r.Memory, r.Version, recorded{commit: sha256.Sum256([]byte(r.Commit)), seq: r.Seq})
	}
	if r.Replaced != nil {
		v.version(r.Replaced.Memory, r.Replaced.Version, recorded{seq: r.Seq, replaced: true})
	}
}

func (v *verifier) version(memory string, version uint64, rec recorded) {
	key := v.key(memory, version)
	if before, twice := v.recorded[key]; twice {
		v.bad(rec.seq, memory, fmt.Sprintf("version %d is recorded already by record %d", version, before.seq))
		return
	}
	v.recorded[key] = rec
}

// pending takes the intents in that have no line.
func (v *verifier) pending(intents []Intent) {
	intents = slices.Clone(intents)
	slices.SortStableFunc(intents, func(a, b Intent) int { return cmp.Compare(a.Rev, b.Rev) })
	for _, in := range intents {
		if _, taken := v.ops[in.Op]; taken {
			continue
		}
		r, err := Unmarshal(in.Data)
		if err != nil {
			v.bad(0, "", fmt.Sprintf("intent %s cannot be read: %v", formatOp(in.Op), err))
			continue
		}
		r.Seq, r.Rev, r.OpID = 0, in.Rev, formatOp(in.Op)
		v.report.Pending++
		v.record(r)
	}
}

// compare takes each version of the store off what is recorded.
func (v *verifier) compare(facts iter.Seq2[Fact, error]) error {
	for f, err := range facts {
		if err != nil {
			return err
		}
		v.report.Versions++
		what := "version"
		if f.Head {
			what = "head, version"
		}
		key := v.key(f.Memory, f.Version)
		rec, ok := v.recorded[key]
		switch {
		case !ok:
			v.bad(0, f.Memory, fmt.Sprintf("%s %d has no record", what, f.Version))
		case !rec.replaced && rec.commit != sha256.Sum256([]byte(f.Commit)):
			v.bad(rec.seq, f.Memory, fmt.Sprintf("%s %d is not the content that was recorded", what, f.Version))
		}
		delete(v.recorded, key)
	}
	return nil
}

// left reports the records whose versions are not in the store.
func (v *verifier) left() {
	for key, rec := range v.recorded {
		v.bad(rec.seq, v.memories[key.memory], fmt.Sprintf("version %d is recorded and not in the store", key.version))
	}
}
