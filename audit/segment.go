package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const segmentExt = ".jsonl"

func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, segmentExt) }

// segments lists the first sequence numbers of the segments in dir, ascending.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), segmentExt)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil || segmentName(n) != e.Name() || n == 0 {
			return nil, fmt.Errorf("%w: %s is no segment", ErrDamaged, e.Name())
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}

// Scan calls fn for every whole line from sequence from on, in order. It checks that sequences have no gap (ErrDamaged
// names the first bad one). A partial last line is not read: the log may be being written. line is valid only in fn.
func Scan(ctx context.Context, dir string, from uint64, fn func(line []byte, r Record) error) error {
	segs, err := segments(dir)
	if err != nil {
		return err
	}
	next := uint64(1)
	for i, first := range segs {
		if i+1 < len(segs) && segs[i+1] <= from { // all of it is before
			next = segs[i+1]
			continue
		}
		if i > 0 && first != next || i == 0 && first != 1 {
			return fmt.Errorf("%w: segment %s begins at record %d, %d was expected", ErrDamaged, segmentName(first), first, next)
		}
		if next, err = scanSegment(ctx, filepath.Join(dir, segmentName(first)), first, from, i+1 == len(segs), fn); err != nil {
			return err
		}
	}
	return nil
}

func scanSegment(ctx context.Context, file string, first, from uint64, last bool, fn func([]byte, Record) error) (uint64, error) {
	f, err := os.Open(file)
	if err != nil {
		return first, err
	}
	defer f.Close()
	next := first
	in := bufio.NewReaderSize(f, 1<<16)
	for ctx.Err() == nil {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 && !last {
				return next, fmt.Errorf("%w: record %d is cut off in %s", ErrDamaged, next, filepath.Base(file))
			}
			return next, nil
		}
		if err != nil {
			return next, err
		}
		line = bytes.TrimSuffix(line, []byte{'\n'})
		r, err := Unmarshal(line)
		if err != nil || r.Seq != next {
			return next, fmt.Errorf("%w: record %d in %s cannot be read (it says %d): %w", ErrDamaged, next, filepath.Base(file), r.Seq, errors.Join(err))
		}
		if next++; r.Seq >= from {
			if err := fn(line, r); err != nil {
				return next, err
			}
		}
	}
	return next, ctx.Err()
}
