/// The notation of an instant in a field of an answer, for callers that quote it.
package enum DateForm: Sendable, Hashable {
    /// Milliseconds under the key ending in `_ms`, as Apple sends today.
    case milliseconds
    /// Milliseconds under the plain key, as in legacy answers.
    case plain
    /// Text such as `2015-02-10 09:00:00 Etc/GMT`, or another form of it that `LenientInstant` reads.
    case text
    /// The same text under the key ending in `_formatted`, in legacy answers.
    case formatted
}

extension LenientFields {
    /// Returns which form `instant` reads for a date; nil if it can read none.
    func form(of date: AnswerDate) -> DateForm? {
        guard let instant = instant(date) else { return nil }
        if integer(at: date.slot(.milliseconds)) == instant { return .milliseconds }
        if integer(at: date.slot(.plain)) == instant { return .plain }
        return text(date, .plain).flatMap(LenientInstant.milliseconds) != nil ? .text : .formatted
    }
}
