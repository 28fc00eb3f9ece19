// Package access says who may do what on the bus.
//
// Every process connects in a [Role], with an NKey of its own from the state
// directory. [Permissions] is the one table of what a role may publish and
// subscribe to, calls of the JetStream API included; the embedded server is
// configured from it, and [ServerConfig] prints it for any other.
//
// Publish permissions do not bind answers: whoever may call a read of the
// JetStream API names any subject as reply, and the server publishes there in
// its own right. The table therefore gives nobody but kernel, projector and
// operator a call that answers with a body of the caller's choice, and an
// approval is believed by its signature alone (see internal/approval).
package access
