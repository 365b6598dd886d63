/// One delivery of a one-time product. What will become of it is decided when it is bought.
struct OneTimePurchase: Sendable {
    /// Counts the purchases of an account from 0, and gives the row its id.
    let ordinal: Int
    let product: OneTimeProduct
    /// When the store first showed it.
    let bookedAt: Moment
    var refundAt: Moment?
    /// When the app finished a consumable: from then on Apple does not mention it.
    var finishedAt: Moment?

    /// Apple's purchase date.
    var at: Moment { bookedAt.wholeSecond }

    func isListed(at moment: Moment) -> Bool {
        guard bookedAt <= moment else { return false }
        return finishedAt.map { $0 > moment } ?? true
    }

    func refund(asOf moment: Moment) -> Moment? { refundAt.flatMap { $0 <= moment ? $0 : nil } }

    /// The first instant after this one at which Apple's answer about it changes.
    func nextChange(after moment: Moment) -> Moment? {
        [refundAt, finishedAt].compactMap { $0 }.filter { $0 > moment }.min()
    }
}
