/// A finished answer with a gap where the request date goes: all of it that changes while nothing happens.
struct RenderedAnswer: Sendable {
    let head: [UInt8]
    let tail: [UInt8]
    /// Old receipts have no request date.
    let hasRequestDate: Bool

    /// An answer that is always the same.
    init(whole bytes: [UInt8]) {
        head = bytes
        tail = []
        hasRequestDate = false
    }

    /// An answer whose request date belongs in front of the byte at `gap`, after another member.
    init(_ bytes: [UInt8], gap: Int) {
        head = Array(bytes[..<gap])
        tail = Array(bytes[gap...])
        hasRequestDate = true
    }

    /// How many bytes it takes to keep.
    var size: Int { head.count + tail.count }

    /// The three forms of the request date, with the comma that separates them from what stands before.
    func requestDate(_ now: Moment) -> [UInt8] {
        guard hasRequestDate else { return [] }
        var json = JSONWriter(continuing: ())
        json.date("request_date", now)
        return json.bytes
    }

    /// The whole body.
    func bytes(requestedAt now: Moment) -> [UInt8] { head + requestDate(now) + tail }
}
