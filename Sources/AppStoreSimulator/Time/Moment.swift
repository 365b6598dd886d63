/// An instant in milliseconds since 1970, the only kind of time inside the simulator.
struct Moment: Hashable, Comparable, Sendable {
    let milliseconds: Int64

    init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The start of this instant's second: Apple's purchase and expiry dates are whole seconds.
    var wholeSecond: Moment {
        let remainder = milliseconds % 1000
        return Moment(milliseconds: milliseconds - (remainder < 0 ? remainder + 1000 : remainder))
    }

    static func < (left: Moment, right: Moment) -> Bool { left.milliseconds < right.milliseconds }

    static func + (moment: Moment, milliseconds: Int64) -> Moment {
        Moment(milliseconds: moment.milliseconds + milliseconds)
    }

    static func - (moment: Moment, milliseconds: Int64) -> Moment {
        Moment(milliseconds: moment.milliseconds - milliseconds)
    }
}
