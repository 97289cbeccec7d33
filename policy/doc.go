// Package policy decides: a directory of Rego and a registry of principals, compiled into an immutable snapshot that is
// swapped whole. It is the only importer of OPA.
//
// Invariants:
//
//  1. Only a well-formed "allow/…" verdict without any "deny/…", with well-formed obligations, allows. Undefined, an
//     error, a timeout, another shape, an unknown effect, an unknown or disabled caller, an unknown scope, a malformed
//     path, content that was not shown: Deny, with the cause.
//  2. A snapshot is served only if it parses, compiles strictly, has both documents in their shape, reads only what is
//     there, uses no builtin whose answer is not determined by its arguments, has no rule but denials and obligations
//     that reads a claim, passes its own tests, and allows an unknown and a disabled caller nothing. Else the old one
//     keeps serving.
//  3. The decision cache belongs to the snapshot, so both are swapped at once. Errors are never cached. Its key holds raw
//     bytes, and of the request all that the policy reads.
//  4. Paths are any bytes; what Rego sees of them is escaped so that two paths never look the same (Escape).
//  5. Builtin errors are strict: a denial whose builtin fails is a denial, not silence.
//
// Lock order: Engine.mu (reloads, one at a time), then cache.mu (new answers only). Deciding from the cache takes none.
package policy
