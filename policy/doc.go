// Package policy decides: a directory of Rego and a registry of principals, compiled into an immutable snapshot that is
// swapped whole. It is the only importer of OPA.
//
// Invariants:
//
//  1. Only a well-formed "allow/…" verdict without any "deny/…" allows. Undefined, an error, a timeout, another shape,
//     an unknown effect, an unknown caller or scope: Deny, with the cause.
//  2. A snapshot is served only if it parses, compiles strictly, has the entry rule in its shape, uses no builtin whose
//     answer is not determined by its arguments, has no allow rule that reads a claim, passes its own tests, and allows an
//     unknown caller nothing. Else the old one keeps serving.
//  3. The decision cache belongs to the snapshot, so both are swapped at once. Errors are never cached.
//  4. Paths are any bytes; what Rego sees of them is escaped so that two paths never look the same (Escape).
//
// Lock order: Engine.mu (reloads, one at a time); deciding takes none.
package policy
