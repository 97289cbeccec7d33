package audit

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuoteIsReversibleAndUnambiguous(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []string{"a/b", "a\\b", "a\\x41", "aA", "\xff", "\\xff", "é", "e\u0301", "new\nline", "\u202e", "\ufffd", "\xef\xbf\xbd"} {
		q := Quote(p)
		back, err := Unquote(q)
		if err != nil || back != p {
			t.Errorf("%q → %q → %q %v", p, q, back, err)
		}
		if other, taken := seen[q]; taken && other != p {
			t.Errorf("%q and %q are both %q", p, other, q)
		}
		seen[q] = p
	}
}

func TestQuoteAnyBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "a")), rapid.String().Draw(rt, "b")
		for _, p := range []string{a, b, a + `\` + b, b + "x" + a} {
			if back, err := Unquote(Quote(p)); err != nil || back != p {
				rt.Fatalf("%q → %q → %q %v", p, Quote(p), back, err)
			}
			line, err := Marshal(Record{Path: Quote(p)})
			if err != nil {
				rt.Fatal(err)
			}
			if r, err := Unmarshal(line); err != nil || r.Path != Quote(p) {
				rt.Fatalf("%q is not the same in JSON: %q %v", p, r.Path, err)
			}
		}
	})
}

func TestUnquoteRefusesWhatQuoteDoesNotMake(t *testing.T) {
	for _, s := range []string{`\`, `a\x`, `\x4`, `\xZZ`, `\xFF`, `\x41`, `\x5c`, `\n`, `\\\`} {
		if p, err := Unquote(s); !errors.Is(err, ErrRecord) {
			t.Errorf("%q is %q, %v", s, p, err)
		}
	}
}

func TestUnmarshalIsStrict(t *testing.T) {
	const good = `{"seq":1,"time":"2026-01-01T00:00:00Z","kind":"change","op":"write","replaced":{"memory":"m","version":1},"rules":["a","a"]}`
	if _, err := Unmarshal([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"unknown key":   `{"seq":1,"more":1}`,
		"other case":    `{"Seq":1}`,
		"folded case":   "{\"\u017feq\":1}",
		"key twice":     `{"seq":1,"kind":"a","seq":1}`,
		"escaped key":   `{"s\u0065q":1}`,
		"twice deeper":  `{"seq":1,"replaced":{"memory":"a","memory":"b","version":1}}`,
		"two values":    `{"seq":1}{"seq":2}`,
		"trailing":      `{"seq":1} x`,
		"null":          `null`,
		"space before":  ` {"seq":1}`,
		"no UTF-8":      "{\"seq\":1,\"path\":\"\xff\"}",
		"negative":      `{"seq":-1}`,
		"empty":         ``,
		"control":       "{\"seq\":1,\"path\":\"\n\"}",
		"array":         `[]`,
		"wrong type":    `{"seq":"1"}`,
		"unknown below": `{"seq":1,"replaced":{"salt":1}}`,
	} {
		if r, err := Unmarshal([]byte(line)); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

func TestMarshalIsOneLine(t *testing.T) {
	line, err := Marshal(Record{Reason: "a\nb\r\u2028<&>\x00", Path: "p"})
	must(t, err)
	if strings.ContainsAny(string(line), "\n\r\x00") || !strings.Contains(string(line), "<&>") {
		t.Fatalf("%s", line)
	}
	if !strings.HasPrefix(string(line), unnumbered) {
		t.Fatalf("%s does not begin with its sequence", line)
	}
	if _, err := Marshal(Record{Reason: strings.Repeat("x", maxLine)}); !errors.Is(err, ErrRecord) {
		t.Fatalf("too long: %v", err)
	}
	if _, err := Marshal(Record{Time: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)}); !errors.Is(err, ErrRecord) {
		t.Fatalf("year 12345: %v", err)
	}
	if got := string(number(nil, 42, line)); got != `{"seq":42`+string(line[len(unnumbered):])+"\n" {
		t.Fatal(got)
	}
}

func TestCommitmentIsHMAC(t *testing.T) {
	got := Commitment([16]byte{1}, [32]byte{2})
	// printf '\2' padded with 31 NUL | openssl dgst -sha256 -mac HMAC -macopt hexkey:01000000000000000000000000000000
	if want := "95dd2ac4895466569eeb0f8a4e7e0f62657d363a68f022518dd9e011cbdd331d"; got != want {
		t.Fatal(got)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"seq":1,"time":"2026-01-01T00:00:00Z","kind":"change","op":"write"}`))
	f.Add([]byte(`{"seq":1,"rules":["a"],"replaced":{"memory":"m","version":1},"uid":0}`))
	f.Add([]byte(`{"seq":1,"seq":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Unmarshal(b)
		if err != nil {
			return
		}
		line, err := Marshal(r)
		if err != nil { // too long
			return
		}
		again, err := Unmarshal(line)
		if err != nil || !again.Time.Equal(r.Time) {
			t.Fatalf("%s → %s: %v", b, line, err)
		}
		again.Time = r.Time
		if len(r.Rules) == 0 {
			r.Rules = nil // [] is not written
		}
		if !reflect.DeepEqual(again, r) {
			t.Fatalf("%s → %s", b, line)
		}
	})
}

func FuzzUnquote(f *testing.F) {
	f.Add(`a\x41\\`)
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := Unquote(Quote(s)); err != nil || p != s {
			t.Fatalf("%q: %q %v", s, p, err)
		}
		_, _ = Unquote(s)
	})
}
