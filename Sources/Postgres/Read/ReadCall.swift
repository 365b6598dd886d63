/// One read and who waits for it.
struct ReadCall: Sendable {
    let statement: Statement
    let parameters: [Parameter]
    let caller = Caller<[Row], DatabaseError>()

    func fail(_ error: DatabaseError) { caller.finish(.failure(error)) }
}

/// A read on its way, and what has already happened to it: each mishap is forgiven once.
struct Attempt {
    let call: ReadCall
    /// Since when the caller waits; after a lost connection, since then.
    var since: Moment
    /// Its connection was lost once.
    var wasLost = false
    /// Its prepared statement was stale once.
    var wasStale = false
    /// It was hit once by a cancellation meant for its predecessor.
    var wasHit = false
}
