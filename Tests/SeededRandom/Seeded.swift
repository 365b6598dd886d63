/// Random numbers that a seed repeats on every machine (SplitMix64: Steele, Lea and Flood 2014). Tests print the seed.
package struct Seeded: RandomNumberGenerator, CustomStringConvertible, Sendable {
    /// What repeats them.
    package let seed: UInt64
    private var state: UInt64

    /// The numbers of a seed, from the first on.
    package init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    /// The seed, for what a test prints.
    package var description: String { "seed \(seed)" }

    /// The next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
