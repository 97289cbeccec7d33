// Package control is the HTTP and JSON front end on backend.View: what the command line speaks, over the daemon's unix
// socket, or over the same handler in its own process when no daemon holds the store. So every verb has one
// implementation, and none can skip policy or record.
//
// Who calls is the peer's uid, told by the kernel (SO_PEERCRED) and looked up in the registry; `as` in a call is
// granted by policy (mount). docs/control.md lists the calls.
package control
