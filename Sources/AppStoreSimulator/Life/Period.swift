/// One paid (or free) stretch of a subscription. It records when each fact became known, so that a device's receipt
/// stays frozen at its creation while the server's rows move on.
struct Period: Sendable {
    struct Expiry: Sendable {
        let knownAt: StoreTime
        let expires: StoreTime
    }

    struct Cancellation: Sendable {
        let at: StoreTime
        let reason: Int
        let isUpgrade: Bool
        var undoneAt: StoreTime?
    }

    /// The number of the period in its subscription, from 0; the row's ids derive from it.
    let ordinal: Int
    /// Why the store booked it.
    let kind: LifeEventKind
    let product: SubscriptionProduct
    let bookedAt: StoreTime
    let purchase: StoreTime
    let offer: PeriodOffer?
    /// The id of a promotional offer; nil means the store's own one.
    let offerID: String?
    /// The number of price increases that the customer had agreed to before.
    let priceIncreases: Int
    var buyer: Buyer
    /// Which payment of a term it is; nil where the whole period is paid at once.
    let payment: Payment?
    /// The seats of a group, or of the group of a member.
    var seats: Seats?
    private(set) var expiries: [Expiry]
    private(set) var cancellations: [Cancellation] = []

    init(
        ordinal: Int, kind: LifeEventKind, product: SubscriptionProduct, bookedAt: StoreTime, purchase: StoreTime,
        expires: StoreTime, offer: OfferBalance?, priceIncreases: Int, buyer: Buyer,
        payment: Payment? = nil, seats: Seats? = nil
    ) {
        self.ordinal = ordinal
        self.kind = kind
        self.product = product
        self.bookedAt = bookedAt
        self.purchase = purchase
        self.offer = offer?.offer
        self.offerID = offer?.id
        self.priceIncreases = priceIncreases
        self.buyer = buyer
        self.payment = payment
        self.seats = seats
        self.expiries = [Expiry(knownAt: bookedAt, expires: expires)]
    }

    var isTrial: Bool { offer == .freeTrial }

    /// The latest expiry.
    var expires: StoreTime { expiries.last?.expires ?? purchase }

    /// The cancellation in effect now.
    var cancellation: Cancellation? { cancellations.last { $0.undoneAt == nil } }

    /// The plan by which it was paid.
    var plan: BillingPlan { payment == nil ? .upfront : .monthly }

    /// When anything about it last changed.
    var modifiedAt: StoreTime {
        let changes =
            expiries.map(\.knownAt) + cancellations.flatMap { [$0.at, $0.undoneAt ?? $0.at] }
            + (seats?.revocations.map(\.at) ?? []) + [seats?.joinedAt ?? bookedAt]
        return changes.reduce(bookedAt) { max($0, $1) }
    }

    func expires(asOf moment: StoreTime) -> StoreTime {
        expiries.last { $0.knownAt <= moment }?.expires ?? expires
    }

    func cancellation(asOf moment: StoreTime) -> Cancellation? {
        cancellations.last { cancellation in
            guard cancellation.at <= moment else { return false }
            guard let undoneAt = cancellation.undoneAt else { return true }
            return undoneAt > moment
        }
    }

    mutating func extend(to expires: StoreTime, at moment: StoreTime) {
        expiries.append(Expiry(knownAt: moment, expires: expires))
    }

    mutating func cancel(at moment: StoreTime, reason: Int, isUpgrade: Bool) {
        cancellations.append(Cancellation(at: moment, reason: reason, isUpgrade: isUpgrade, undoneAt: nil))
    }

    mutating func undoCancellation(at moment: StoreTime) {
        guard let index = cancellations.lastIndex(where: { $0.undoneAt == nil }) else { return }
        cancellations[index].undoneAt = moment
    }
}
