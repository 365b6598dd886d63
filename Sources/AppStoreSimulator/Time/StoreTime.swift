/// An instant in milliseconds since 1970, the only kind of time inside the simulator.
struct StoreTime: Hashable, Comparable, Sendable {
    let milliseconds: Int64

    init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The start of this instant's second: Apple's purchase and expiry dates are whole seconds.
    var wholeSecond: StoreTime {
        let remainder = milliseconds % 1000
        return StoreTime(milliseconds: milliseconds - (remainder < 0 ? remainder + 1000 : remainder))
    }

    static func < (left: StoreTime, right: StoreTime) -> Bool { left.milliseconds < right.milliseconds }

    static func + (moment: StoreTime, milliseconds: Int64) -> StoreTime {
        StoreTime(milliseconds: moment.milliseconds + milliseconds)
    }

    static func - (moment: StoreTime, milliseconds: Int64) -> StoreTime {
        StoreTime(milliseconds: moment.milliseconds - milliseconds)
    }
}
