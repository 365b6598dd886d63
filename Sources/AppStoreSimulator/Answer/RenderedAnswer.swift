/// A rendered response with a gap for the request date, the only part that changes while nothing happens.
struct RenderedAnswer: Sendable {
    let head: [UInt8]
    let tail: [UInt8]
    /// Whether the response has a request date; old receipts have none.
    let hasRequestDate: Bool

    /// Creates a response that is always the same.
    init(whole bytes: [UInt8]) {
        head = bytes
        tail = []
        hasRequestDate = false
    }

    /// Creates a response whose request date goes before the byte at `gap`, after another member.
    init(_ bytes: [UInt8], gap: Int) {
        head = Array(bytes[..<gap])
        tail = Array(bytes[gap...])
        hasRequestDate = true
    }

    /// The number of bytes it occupies in the cache.
    var size: Int { head.count + tail.count }

    /// Returns the three forms of the request date, with the comma that separates them from the member before.
    func requestDate(_ now: StoreTime) -> [UInt8] {
        guard hasRequestDate else { return [] }
        var json = JSONWriter(continuing: ())
        json.date("request_date", now)
        return json.bytes
    }

    /// Returns the whole body.
    func bytes(requestedAt now: StoreTime) -> [UInt8] { head + requestDate(now) + tail }
}
