import Foundation

/// How long some work took, and which process used how much of the processors.
struct Measurement: Sendable {
    /// Pieces of work done.
    var count: Int
    /// Seconds by the clock.
    var seconds: Double
    /// Seconds of processor time, by process.
    var processorSeconds: [String: Double]

    /// Pieces a second.
    var rate: Double { Double(count) / seconds }

    /// Microseconds of processor time a piece, in the named processes.
    func microseconds(in processes: String...) -> Double {
        processes.reduce(0) { $0 + (processorSeconds[$1] ?? 0) } / Double(max(count, 1)) * 1_000_000
    }

    /// One line for people.
    func line(_ name: String) -> String {
        let split = processorSeconds.sorted { $0.key < $1.key }
            .map { "\($0.key) \(Int(($0.value / Double(max(count, 1)) * 1_000_000).rounded())) µs" }
        return "\(name): \(count) in \(seconds.shown) s, \(Int(rate))/s; "
            + "processor each: \(split.joined(separator: ", "))"
    }
}

extension World {
    /// Measures work that answers how many pieces it did.
    func measured(_ work: () async throws -> Int) async throws -> Measurement {
        let before = processorSeconds()
        let start = ContinuousClock.now
        let count = try await work()
        let elapsed = ContinuousClock.now - start
        let after = processorSeconds()
        return Measurement(
            count: count, seconds: Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18,
            processorSeconds: after.merging(before) { $0 - $1 })
    }
}

extension Double {
    /// With two decimals.
    var shown: String { String(format: "%.2f", self) }
}
