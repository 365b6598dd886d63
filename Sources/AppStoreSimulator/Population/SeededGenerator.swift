/// SplitMix64: the same seed and stream always give the same numbers, on every machine.
struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64, stream: UInt64) {
        state = SeededGenerator.mixed(seed &+ 0x9E37_79B9_7F4A_7C15 &* (stream &+ 1))
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return SeededGenerator.mixed(state)
    }

    /// Returns a number in 0..<1.
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

    mutating func between(_ low: Double, _ high: Double) -> Double { low + (high - low) * unit() }

    mutating func chance(_ share: Double) -> Bool { unit() < share }

    mutating func below(_ bound: Int) -> Int { bound <= 0 ? 0 : Int(next() % UInt64(bound)) }

    static func mixed(_ value: UInt64) -> UInt64 {
        var mixed = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
