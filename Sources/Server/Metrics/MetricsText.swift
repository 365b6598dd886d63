import Tracking

/// The Prometheus text format, version 0.0.4:
/// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
enum MetricsText {
    /// The content type for scrapers.
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Returns the metrics as text.
    static func text(of families: [MetricsRegistry.Family]) -> String {
        var text = ""
        for family in families {
            text += "# HELP \(family.name) \(escaped(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.word)\n"
            for (labels, series) in family.series.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
                switch series {
                case .value(let value): text += line(family.name, labels, value.value)
                case .histogram(let histogram): text += lines(family.name, labels, histogram)
                }
            }
        }
        return text
    }

    /// Returns the lines of a histogram. Buckets are cumulative, and the last one counts every value.
    private static func lines(
        _ name: String, _ labels: [MetricsRegistry.Label], _ histogram: MetricHistogram
    ) -> String {
        let counts = histogram.counts
        var (text, total) = ("", UInt64(0))
        for (bucket, count) in counts.buckets.enumerated() {
            total += count
            let bound = bucket < histogram.bounds.count ? number(histogram.bounds[bucket]) : "+Inf"
            text += line(name + "_bucket", labels + [.init(name: "le", value: bound)], Double(total))
        }
        return text + line(name + "_sum", labels, counts.sum) + line(name + "_count", labels, Double(total))
    }

    private static func line(_ name: String, _ labels: [MetricsRegistry.Label], _ value: Double) -> String {
        let inner = labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }.joined(separator: ",")
        return "\(name)\(inner.isEmpty ? "" : "{\(inner)}") \(number(value))\n"
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return Int64(exactly: value).map(String.init) ?? "\(value)"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        let lines = text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
        return quotes ? lines.replacing("\"", with: "\\\"") : lines
    }
}

/// Names in the form that the format allows. Every other character becomes `_`.
enum MetricName {
    /// Returns a metric's name: letters, digits, `_` and `:`.
    static func metric(_ text: String) -> String { cleaned(text, also: [UInt8(ascii: ":")]) }

    /// Returns a label's name: letters, digits and `_`.
    static func label(_ text: String) -> String { cleaned(text, also: []) }

    private static func cleaned(_ text: String, also extra: [UInt8]) -> String {
        let letters = (UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"))
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let bytes = text.utf8.enumerated().map { place, byte -> UInt8 in
            let isDigit = digits.contains(byte) && place > 0
            let isAllowed = letters.0.contains(byte) || letters.1.contains(byte) || isDigit || extra.contains(byte)
            return isAllowed ? byte : UInt8(ascii: "_")
        }
        return bytes.isEmpty ? "_" : String(decoding: bytes, as: UTF8.self)
    }
}
