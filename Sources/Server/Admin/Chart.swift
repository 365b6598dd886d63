import Tracking

/// A chart as SVG, with its figures in a table for readers who cannot see it.
struct Chart {
    /// A line or one colour of the bars.
    struct Series {
        let name: String
        /// One for each bucket.
        let values: [Double]
        /// The colour's class in the style sheet.
        let style: String
    }

    struct Line {
        let style, points: String
    }

    struct Bar {
        let style, x, y, width, height: String
    }

    struct Label {
        let x, y, anchor, text: String
    }

    /// The place of one bucket, which shows its figures while a pointer is on it.
    struct Spot {
        let x, width, text: String
    }

    static let width = 640.0
    static let height = 220.0
    static let left = 64.0
    static let right = 8.0
    static let top = 12.0
    static let bottom = 28.0

    let id: String
    let title: String
    /// A sentence with the newest figures.
    let description: String
    let lines: [Line]
    let bars: [Bar]
    /// The vertical positions of the grid lines.
    let grid: [String]
    let labels: [Label]
    let spots: [Spot]
    let legend: [Series]
    /// The figures; nil where the page has them beside the chart.
    let table: AdminTable?

    init(
        id: String, title: String, description: String, buckets: [String], series: [Series], asBars: Bool,
        table: AdminTable?
    ) {
        self.id = id
        self.title = title
        self.description = description
        self.table = table
        legend = series
        let totals = buckets.indices.map { bucket in series.reduce(0) { $0 + $1.values[bucket] } }
        let highest = (asBars ? totals : series.flatMap(\.values)).max() ?? 0
        let scale = Scale(highest: highest, buckets: buckets.count)
        lines = asBars ? [] : series.map { Line(style: $0.style, points: scale.points(of: $0.values)) }
        bars = asBars ? scale.bars(of: series) : []
        grid = scale.grid
        labels = scale.labels(buckets: buckets)
        spots = scale.spots(of: buckets) { index in series.map { "\($0.name): \(Scale.whole($0.values[index]))" } }
    }
}

/// The mapping of values and buckets to positions in the chart.
struct Scale {
    /// The most grid lines above the axis.
    static let stepsMax = 4.0

    /// The value between two grid lines, and the number of grid lines above the axis.
    let step: Double
    let steps: Int
    let buckets: Int

    init(highest: Double, buckets: Int) {
        step = Self.roundNumber(from: highest / Self.stepsMax)
        steps = max(1, Int((highest / step).rounded(.up)))
        self.buckets = buckets
    }

    var top: Double { step * Double(steps) }

    /// Returns the next round number: 1, 2 or 5 followed by zeros.
    static func roundNumber(from value: Double) -> Double {
        var unit = 1.0
        while unit * 10 <= value { unit *= 10 }
        return [1.0, 2, 5].map { $0 * unit }.first { value <= $0 } ?? unit * 10
    }

    var grid: [String] { (1...steps).map { Self.short(y(step * Double($0))) } }

    private var plotHeight: Double { Chart.height - Chart.top - Chart.bottom }
    private var plotWidth: Double { Chart.width - Chart.left - Chart.right }

    func y(_ value: Double) -> Double { Chart.top + plotHeight * (1 - min(max(value / top, 0), 1)) }

    /// Returns the horizontal middle of a bucket.
    func x(_ bucket: Int) -> Double {
        Chart.left + plotWidth * (Double(bucket) + 0.5) / Double(max(buckets, 1))
    }

    /// Returns the places of the buckets, with the bucket's name and the lines of its figures.
    func spots(of buckets: [String], lines: (Int) -> [String]) -> [Chart.Spot] {
        let width = plotWidth / Double(max(buckets.count, 1))
        return buckets.indices.map { index in
            Chart.Spot(
                x: Self.short(x(index) - width / 2), width: Self.short(width),
                text: ([buckets[index]] + lines(index)).joined(separator: "\n"))
        }
    }

    func points(of values: [Double]) -> String {
        values.enumerated().map { "\(Self.short(x($0)))," + Self.short(y($1)) }.joined(separator: " ")
    }

    func bars(of series: [Chart.Series]) -> [Chart.Bar] {
        let width = plotWidth / Double(max(buckets, 1)) * 0.8
        return (0..<buckets).flatMap { bucket -> [Chart.Bar] in
            var below = 0.0
            return series.compactMap { one in
                let value = one.values[bucket]
                guard value > 0 else { return nil }
                let (upper, lower) = (y(below + value), y(below))
                below += value
                return Chart.Bar(
                    style: one.style, x: Self.short(x(bucket) - width / 2), y: Self.short(upper),
                    width: Self.short(width), height: Self.short(lower - upper))
            }
        }
    }

    func labels(buckets: [String]) -> [Chart.Label] {
        let edge = Self.short(Chart.left - 6)
        var labels = (0...steps).map { count in
            let value = step * Double(count)
            return Chart.Label(x: edge, y: Self.short(y(value) + 4), anchor: "end", text: Self.whole(value))
        }
        let foot = Self.short(Chart.height - 8)
        if let first = buckets.first {
            labels.append(Chart.Label(x: Self.short(Chart.left), y: foot, anchor: "start", text: first))
        }
        if buckets.count > 4 {
            let middle = buckets.count / 2
            labels.append(Chart.Label(x: Self.short(x(middle)), y: foot, anchor: "middle", text: buckets[middle]))
        }
        if buckets.count > 1, let last = buckets.last {
            labels.append(Chart.Label(x: Self.short(Chart.width - Chart.right), y: foot, anchor: "end", text: last))
        }
        return labels
    }

    /// Formats a value to the nearest whole number.
    static func whole(_ value: Double) -> String { grouped(Int64(value.rounded())) }

    /// Formats a coordinate to a tenth of a pixel, which is precise enough.
    private static func short(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return tenths.isMultiple(of: 10) ? String(tenths / 10) : "\(tenths / 10).\(abs(tenths % 10))"
    }
}

/// Days grouped into buckets, so that a chart has no more points than fit the page.
struct Buckets {
    /// The most days with a point each. Beyond it, each month has one point.
    static let daysMax = 92

    /// The names of the buckets: days or months. The last one is not over.
    let names: [String]
    /// The index range of each bucket's days.
    private let days: [Range<Int>]

    init(_ dates: [String]) {
        let isByMonth = dates.count > Self.daysMax
        var (names, days): ([String], [Range<Int>]) = ([], [])
        for (index, date) in dates.enumerated() {
            let name = isByMonth ? String(date.prefix(7)) : date
            if names.last == name, let last = days.popLast() {
                days.append(last.lowerBound..<(index + 1))
            } else {
                names.append(name)
                days.append(index..<(index + 1))
            }
        }
        self.names = names.dropLast() + names.suffix(1).map { "\($0) so far" }
        self.days = days
    }

    /// Returns the value at each bucket's end.
    func last(of values: [Int64]) -> [Int64] { days.map { values[$0.upperBound - 1] } }

    func sum(of values: [Int64]) -> [Int64] { days.map { values[$0].reduce(0, +) } }
}

extension Overview {
    /// In the order of the page.
    var charts: [Chart] {
        let ofSubscriptions = [
            chart(
                id: "active", title: "Subscriptions with access", asBars: false,
                [("With access", \.active), ("Paying", \.paying), ("In a trial", \.trial)]),
            chart(
                id: "churn", title: "Subscriptions that stopped paying", asBars: true, [("Stopped paying", \.churned)],
                alsoListed: [("Began to pay", \.began), ("Came back", \.returned)]),
            chart(
                id: "trials", title: "Trials that began", asBars: true, [("Began", \.trialsStarted)],
                alsoListed: [("Were followed by a charge", \.trialsConverted), ("Were lost", \.trialsLost)]),
        ]
        return revenue.enumerated().map(chart) + ofSubscriptions + [checks]
    }

    private func chart(_ position: Int, _ revenue: Revenue) -> Chart {
        let buckets = Buckets(revenue.days.map(\.day))
        let amounts = buckets.last(of: revenue.days.map(\.milliunits))
        return Chart(
            id: "mrr-\(position)", title: "Monthly recurring revenue in \(revenue.currency)",
            description: "Now it is \(amountText(amounts.last ?? 0)) \(revenue.currency).",
            buckets: buckets.names,
            series: [.init(name: revenue.currency, values: amounts.map { Double($0) / 1_000 }, style: "first")],
            asBars: false,
            table: AdminTable(
                "Monthly recurring revenue in \(revenue.currency)", ["Period", revenue.currency],
                zip(buckets.names, amounts).reversed().map { [.text($0), .amount($1)] }))
    }

    private typealias Figure = (name: String, of: KeyPath<Day, Int64>)

    /// Returns the chart of figures of each day: lines of levels, or bars of sums.
    private func chart(
        id: String, title: String, asBars: Bool, _ figures: [Figure], alsoListed: [Figure] = []
    ) -> Chart {
        let buckets = Buckets(days.map(\.day))
        let columns = (figures + alsoListed).map { figure in
            let values = days.map { $0[keyPath: figure.of] }
            return (name: figure.name, values: asBars ? buckets.sum(of: values) : buckets.last(of: values))
        }
        let newest = columns.map { "\($0.name.lowercased()): \(grouped($0.values.last ?? 0))" }
        return Chart(
            id: id, title: title,
            description: "\(buckets.names.last ?? "No day"): \(newest.joined(separator: ", ")).",
            buckets: buckets.names,
            series: zip(columns.prefix(figures.count), ["first", "second", "third"]).map { column, style in
                Chart.Series(name: column.name, values: column.values.map(Double.init), style: style)
            },
            asBars: asBars,
            table: AdminTable(
                title, ["Period"] + columns.map(\.name),
                buckets.names.indices.reversed().map { index in
                    [.text(buckets.names[index])] + columns.map { .number($0.values[index]) }
                }))
    }

    private var checks: Chart {
        let columns: [(String, KeyPath<Hour, Int64>, String)] = [
            ("Verified", \.verified, "first"), ("Refused", \.rejected, "second"), ("No answer", \.failed, "alarm"),
        ]
        let newest = hours.last
        return Chart(
            id: "checks", title: "Apple's answers by hour",
            description: newest.map {
                "Since \($0.hour) UTC: \(grouped($0.verified)) verified, \(grouped($0.rejected)) refused, "
                    + "\(grouped($0.failed)) without an answer."
            } ?? "No hour is over.",
            buckets: hours.map(\.hour),
            series: columns.map { name, value, style in
                Chart.Series(name: name, values: hours.map { Double($0[keyPath: value]) }, style: style)
            },
            asBars: true,
            table: AdminTable(
                "Apple's answers by hour (UTC)", ["From"] + columns.map(\.0),
                hours.reversed().map { hour in
                    [.text(hour.hour)] + columns.map { .number(hour[keyPath: $0.1]) }
                }))
    }
}
