package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

type versionKey struct {
	memory  string
	version uint64
}

// Verify reads the whole log and compares it with the store. Every version has exactly one record, with a commitment to
// its content, and every record of a version has that version; sequences have no gap; an operation is recorded once;
// revisions grow. facts are the store's at revision upto: later records are not held against it. pending are intents that the log has not taken over yet: they count as records. It holds one entry a
// version in memory.
func Verify(ctx context.Context, dir string, facts iter.Seq2[Fact, error], pending []Intent, upto uint64) (Report, error) {
	v := verifier{upto: upto, recorded: map[versionKey]string{}, ops: map[string]uint64{}}
	err := Scan(ctx, dir, 1, func(_ []byte, r Record) error {
		v.report.Records++
		v.report.Last = r.Seq
		v.record(r)
		return nil
	})
	if errors.Is(err, ErrDamaged) {
		v.bad(v.report.Last+1, "", err.Error())
		err = nil
	}
	if err != nil {
		return v.report, err
	}
	for _, in := range pending {
		r, err := Unmarshal(in.Data)
		if err != nil {
			v.bad(0, "", fmt.Sprintf("intent %x cannot be read: %v", in.Op, err))
			continue
		}
		r.Rev, r.OpID = in.Rev, formatOp(in.Op)
		if _, taken := v.ops[r.OpID]; !taken {
			v.report.Pending++
			v.record(r)
		}
	}
	return v.report, v.compare(facts)
}

type verifier struct {
	report   Report
	recorded map[versionKey]string // commitment
	ops      map[string]uint64
	rev      uint64
	upto     uint64
}

func (v *verifier) bad(seq uint64, memory, detail string) {
	v.report.Problems = append(v.report.Problems, Problem{Seq: seq, Memory: memory, Detail: detail})
}

func (v *verifier) record(r Record) {
	if r.Kind == "recover" && r.Op == "unreadable" {
		v.bad(r.Seq, "", "a record could not be rendered: "+r.Cause)
	}
	if r.Kind != "change" {
		return
	}
	if before, twice := v.ops[r.OpID]; twice {
		v.bad(r.Seq, r.Memory, fmt.Sprintf("operation %s is recorded already by record %d", r.OpID, before))
	}
	v.ops[r.OpID] = r.Seq
	if r.Rev <= v.rev {
		v.bad(r.Seq, r.Memory, fmt.Sprintf("revision %d comes after revision %d", r.Rev, v.rev))
	}
	v.rev = r.Rev
	if r.Rev > v.upto {
		return
	}
	if r.Version > 0 {
		v.version(r.Seq, r.Memory, r.Version, r.Commit)
	}
	if r.Replaced != nil {
		v.version(r.Seq, r.Replaced.Memory, r.Replaced.Version, "")
	}
}

func (v *verifier) version(seq uint64, memory string, version uint64, commit string) {
	key := versionKey{memory, version}
	if _, twice := v.recorded[key]; twice {
		v.bad(seq, memory, fmt.Sprintf("version %d is recorded twice", version))
	}
	v.recorded[key] = commit
}

// compare takes each version of the store off what is recorded; what is left has no version.
func (v *verifier) compare(facts iter.Seq2[Fact, error]) error {
	for f, err := range facts {
		if err != nil {
			return err
		}
		v.report.Versions++
		key := versionKey{f.Memory, f.Version}
		commit, ok := v.recorded[key]
		switch what := "version"; {
		case !ok && f.Head:
			what = "head, version"
			fallthrough
		case !ok:
			v.bad(0, f.Memory, fmt.Sprintf("%s %d has no record", what, f.Version))
		case commit != "" && commit != f.Commit:
			v.bad(0, f.Memory, fmt.Sprintf("version %d is not the content that was recorded", f.Version))
		}
		delete(v.recorded, key)
	}
	for key := range v.recorded {
		v.bad(0, key.memory, fmt.Sprintf("version %d is recorded and not in the store", key.version))
	}
	return nil
}
