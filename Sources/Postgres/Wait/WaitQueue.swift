/// A queue of at most `limit` callers, served in the order of arrival.
///
/// A ticket is a place in the queue, so that leaving early costs the same however long the queue is.
struct WaitQueue<Call: Sendable>: Sendable {
    /// A call and the start of its wait.
    struct Waiting: Sendable {
        let call: Call
        let waitStart: Moment
    }

    private let limit: Int
    private var places: [Waiting?] = []
    private var head = 0
    private var firstTicket = 0
    /// The number of waiting calls.
    private(set) var count = 0
    /// Whether the queue is closed to new calls.
    private(set) var isClosed = false

    init(limit: Int) { self.limit = limit }

    /// Takes the last place and returns its ticket; throws `.queueFull` or `.closed`.
    mutating func join(_ call: Call, at now: Moment) throws(DatabaseError) -> Int {
        if isClosed { throw .closed }
        if count >= limit { throw .queueFull(limit) }
        places.append(Waiting(call: call, waitStart: now))
        count += 1
        return firstTicket + places.count - 1
    }

    /// Gives up a place and returns its call; nil when the call was already taken.
    mutating func leave(_ ticket: Int) -> Call? {
        let index = ticket - firstTicket
        guard index >= head, index < places.count, let waiting = places[index] else { return nil }
        places[index] = nil
        count -= 1
        dropEmptyHead()
        return waiting.call
    }

    /// Returns the next call; nil when none waits.
    mutating func take() -> Waiting? {
        dropEmptyHead()
        guard head < places.count, let waiting = places[head] else { return nil }
        places[head] = nil
        count -= 1
        dropEmptyHead()
        return waiting
    }

    /// Returns at most `most` next calls.
    mutating func take(atMost most: Int) -> [Waiting] {
        var taken: [Waiting] = []
        taken.reserveCapacity(min(most, count))
        while taken.count < most, let waiting = take() { taken.append(waiting) }
        return taken
    }

    /// Removes and returns the calls that have waited since `moment` or longer.
    mutating func takeWaiting(since moment: Moment) -> [Call] {
        var taken: [Call] = []
        while head < places.count, let waiting = places[head], waiting.waitStart <= moment {
            taken.append(waiting.call)
            _ = take()
        }
        return taken
    }

    /// Closes the queue to new calls and returns those that waited.
    mutating func close() -> [Call] {
        isClosed = true
        return take(atMost: count).map(\.call)
    }

    /// Moves the head past abandoned places, and frees their memory once half of it is empty.
    private mutating func dropEmptyHead() {
        while head < places.count, places[head] == nil { head += 1 }
        guard head == places.count || (head >= 1_024 && head * 2 > places.count) else { return }
        firstTicket += head
        places.removeFirst(head)
        head = 0
    }
}
