// Package worker takes messages of EVENTS from durable pull consumers and hands
// them to handlers, through a Watermill router.
//
// A [Subscriber] is a thin [message.Subscriber] on nats.go/jetstream: its topics
// are durable consumers that somebody else made, it pulls one message at a time
// for each free slot, keeps it alive by requests while a handler works, and
// settles it as the handler chose: Watermill knows ack and nack only, so the
// [Outcome] goes by the message's context. A [Worker] is the router with its
// middlewares. [Service], [Asker] and [Doorbell] are what the claim protocol
// needs of plain NATS.
package worker
