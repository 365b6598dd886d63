import Foundation
import TestSupport

/// Reads Prometheus's text format strictly: the second opinion about what we write.
///
/// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
struct MetricsReader {
    struct Sample: Hashable {
        let name: String
        let labels: [String: String]
        let value: Double
    }

    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    private(set) var samples: [Sample] = []
    private(set) var types: [String: String] = [:]
    private var finished: Set<String> = []
    private var current = ""

    init(_ text: String) throws {
        guard text.isEmpty || text.hasSuffix("\n") else { throw Fault(description: "no newline at the end") }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            try read(String(line))
        }
        guard Set(samples.map { [$0.name: $0.labels] }).count == samples.count else {
            throw Fault(description: "a series appears twice")
        }
        try checkHistograms()
    }

    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        samples.first { $0.name == name && $0.labels == labels }?.value
    }

    private mutating func read(_ line: String) throws {
        if line.hasPrefix("# HELP ") { return try begin(line.dropFirst(7)) }
        if line.hasPrefix("# TYPE ") {
            let words = line.dropFirst(7).split(separator: " ")
            guard words.count == 2, ["counter", "gauge", "histogram"].contains(words[1]), words[0] == current else {
                throw Fault(description: line)
            }
            types[String(words[0])] = String(words[1])
            return
        }
        let pattern =
            /([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)/
        guard let match = line.wholeMatch(of: pattern), let value = Self.number(String(match.3)) else {
            throw Fault(description: line)
        }
        let name = String(match.1)
        guard name == current || types[current] == "histogram" && name.hasPrefix(current + "_") else {
            throw Fault(description: "\(line) does not belong to \(current)")
        }
        samples.append(Sample(name: name, labels: Self.labels(String(match.2 ?? "")), value: value))
    }

    private mutating func begin(_ rest: Substring) throws {
        let name = String(rest.prefix { $0 != " " })
        guard finished.insert(name).inserted else { throw Fault(description: "\(name) appears in two places") }
        current = name
    }

    private func checkHistograms() throws {
        for (name, type) in types where type == "histogram" {
            let buckets = samples.filter { $0.name == name + "_bucket" }
            let groups = Dictionary(grouping: buckets) { $0.labels.filter { $0.key != "le" } }
            for (labels, group) in groups {
                let bounds = group.compactMap { $0.labels["le"].flatMap(Self.number) }
                guard bounds == bounds.sorted(), bounds.last == .infinity, bounds.count == group.count,
                    group.map(\.value) == group.map(\.value).sorted(),
                    value(name + "_count", labels) == group.last?.value, value(name + "_sum", labels) != nil
                else { throw Fault(description: "\(name) \(labels) is no histogram") }
            }
        }
    }

    private static func number(_ text: String) -> Double? {
        switch text {
        case "+Inf": .infinity
        case "-Inf": -.infinity
        case "NaN": .nan
        default: Double(text)
        }
    }

    private static func labels(_ text: String) -> [String: String] {
        text.matches(of: /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/).reduce(into: [:]) { labels, match in
            let value = String(match.2).replacing("\\\\", with: "\u{0}").replacing("\\n", with: "\n")
                .replacing("\\\"", with: "\"").replacing("\u{0}", with: "\\")
            labels[String(match.1)] = value
        }
    }
}
