import Ledger

/// Days grouped into buckets, so that a chart has no more points than fit the page.
struct Buckets {
    /// The most days with a point each. Beyond it, each month has one point.
    static let daysMax = 92

    /// The names of the buckets: days or months. The last one is not over.
    let names: [String]
    /// The index range of each bucket's days.
    private let days: [Range<Int>]

    init(_ dates: [String]) {
        guard dates.count > Self.daysMax else {
            names = Self.marked(dates)
            days = dates.indices.map { $0..<($0 + 1) }
            return
        }
        var (names, days): ([String], [Range<Int>]) = ([], [])
        for (index, date) in dates.enumerated() {
            let month = String(date.prefix(7))
            if names.last == month, let last = days.popLast() {
                days.append(last.lowerBound..<(index + 1))
            } else {
                names.append(month)
                days.append(index..<(index + 1))
            }
        }
        (self.names, self.days) = (Self.marked(names), days)
    }

    private static func marked(_ names: [String]) -> [String] {
        names.dropLast() + names.suffix(1).map { "\($0) so far" }
    }

    /// Returns the value at each bucket's end.
    func last(of values: [Int64]) -> [Int64] { days.map { values[$0.upperBound - 1] } }

    /// Returns the sum of each bucket's values.
    func sum(of values: [Int64]) -> [Int64] { days.map { values[$0].reduce(0, +) } }
}
