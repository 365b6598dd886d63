/// Spreads checks so that receipts due at the same moment are not checked at once.
///
/// The same receipt, moment and purpose always give the same spread: a repeated settlement plans the same check.
struct Jitter {
    /// The receipt's own number.
    let seed: UInt64

    /// Returns a delay from zero up to, not including, `limit`, for one moment.
    func delay(below limit: Delay, at moment: Int64) -> Delay {
        guard limit > .zero else { return .zero }
        let hash = Self.mix(seed ^ Self.mix(UInt64(bitPattern: moment)))
        return Delay(milliseconds: Int64(hash % UInt64(limit.milliseconds)))
    }

    /// Applies the finishing step of SplitMix64: every bit of the input reaches every bit of the output.
    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
