/// The number of calls of something.
package actor CallCount {
    /// The calls so far.
    package private(set) var count = 0

    /// Creates a count of zero.
    package init() {}

    /// Counts a call.
    package func add() { count += 1 }
}
