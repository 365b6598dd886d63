/// One read and its caller.
struct ReadCall: Sendable {
    let statement: Statement
    let parameters: [Parameter]
    let caller = PendingCall<[Row], DatabaseError>()

    func fail(_ error: DatabaseError) { caller.finish(.failure(error)) }
}

/// A read in flight and its mishaps so far: each kind is forgiven once.
struct Attempt {
    let call: ReadCall
    /// The start of the caller's wait; after a lost connection, the moment of the loss.
    var since: Moment
    /// Whether its connection was lost once.
    var wasLost = false
    /// Whether its prepared statement was stale once.
    var wasStale = false
    /// Whether a cancellation meant for its predecessor hit it once.
    var wasHit = false
}
