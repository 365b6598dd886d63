/// What a notification is about. It is enough to write the notification again at any time.
enum NotificationSource: Sendable, Hashable {
    /// An event of a subscription of an account, by their numbers.
    case event(subscription: Int, number: Int)
    /// A one-time purchase, by its number.
    case charge(Int)
    case refund(purchase: Int, number: Int)
    case reversal(purchase: Int, number: Int)
    /// A request for a refund, by its number.
    case request(Int)
    case decline(Int)
    /// A test, by its number.
    case test(Int)
    /// The summary of an extension for all, by its key.
    case summary(String)
    /// A subscription that an extension for all left out.
    case failure(subscription: Int, key: String)

    /// A number that differs for different sources, the same in every process.
    var number: UInt64 {
        switch self {
        case .event(let subscription, let number): Self.mixed(1, subscription, number)
        case .charge(let purchase): Self.mixed(2, purchase, 0)
        case .refund(let purchase, let number): Self.mixed(3, purchase, number)
        case .reversal(let purchase, let number): Self.mixed(4, purchase, number)
        case .request(let number): Self.mixed(5, number, 0)
        case .decline(let number): Self.mixed(6, number, 0)
        case .test(let number): Self.mixed(7, number, 0)
        case .summary(let key): Self.mixed(8, Self.number(of: key), 0)
        case .failure(let subscription, let key): Self.mixed(9, Self.number(of: key), subscription)
        }
    }

    private static func mixed(_ kind: UInt64, _ first: Int, _ second: Int) -> UInt64 {
        let once = SeededGenerator.mixed(kind &+ UInt64(bitPattern: Int64(first)) &* 0x9E37_79B9_7F4A_7C15)
        return SeededGenerator.mixed(once &+ UInt64(bitPattern: Int64(second)))
    }

    private static func number(of key: String) -> Int {
        key.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF_FFFF }
    }
}

/// Something that Apple notifies about.
struct NotificationOccasion: Sendable {
    let source: NotificationSource
    let name: NotificationName
    /// When it happened, which is the date of the signature.
    let at: StoreTime
    /// The account; nil for tests and summaries.
    let account: Int?
    let environment: StoreEnvironment
    let transactionID: String?
    let originalTransactionID: String?
}

extension Account {
    /// Returns what Apple notifies about from an instant on, in no particular order.
    func occasions(since start: StoreTime) -> [NotificationOccasion] {
        begun.indices.flatMap { events(of: lives[$0], number: $0, since: start) }
            + purchases.purchases.flatMap { events(of: $0, since: start) } + requests(since: start)
    }

    private func events(of life: Life, number: Int, since start: StoreTime) -> [NotificationOccasion] {
        // Events are in the order of time, and only the newest are wanted.
        let first = life.lifeEvents.lastIndex { $0.at < start }.map { $0 + 1 } ?? 0
        return life.lifeEvents.indices[first...].compactMap { place in
            let happened = life.lifeEvents[place]
            guard let name = NotificationName(happened, of: life) else { return nil }
            return NotificationOccasion(
                source: .event(subscription: number, number: place), name: name, at: happened.at, account: index,
                environment: environment, transactionID: happened.ordinal.map { life.ids.transactionID(of: $0) },
                originalTransactionID: life.ids.originalTransactionID)
        }
    }

    private func events(of bought: OneTimePurchase, since start: StoreTime) -> [NotificationOccasion] {
        let id = ids.purchase(bought.ordinal)
        func occasion(_ source: NotificationSource, _ type: String, _ at: StoreTime?) -> [NotificationOccasion] {
            guard let at, (start...max(start, now)).contains(at) else { return [] }
            return [
                NotificationOccasion(
                    source: source, name: NotificationName(type), at: at, account: index, environment: environment,
                    transactionID: id, originalTransactionID: id)
            ]
        }
        return occasion(.charge(bought.ordinal), "ONE_TIME_CHARGE", bought.bookedAt)
            + bought.refunds.enumerated().flatMap { number, refund in
                occasion(.refund(purchase: bought.ordinal, number: number), "REFUND", refund.at)
                    + occasion(
                        .reversal(purchase: bought.ordinal, number: number), "REFUND_REVERSED", refund.reversedAt)
            }
    }

    private func requests(since start: StoreTime) -> [NotificationOccasion] {
        refundRequests.enumerated().flatMap { number, request in
            [
                occasion(.request(number), "CONSUMPTION_REQUEST", request.at, of: request),
                occasion(.decline(number), "REFUND_DECLINED", request.declinedAt, of: request),
            ].compactMap { $0 }.filter { $0.at >= start }
        }
    }

    private func occasion(
        _ source: NotificationSource, _ type: String, _ at: StoreTime?, of request: RefundRequest
    ) -> NotificationOccasion? {
        at.map { at in
            NotificationOccasion(
                source: source, name: NotificationName(type), at: at, account: index, environment: environment,
                transactionID: request.transactionID,
                originalTransactionID: originalTransactionID(of: request.transactionID))
        }
    }

    private func originalTransactionID(of id: String) -> String? {
        if let place = period(id) { return lives[place.subscription].ids.originalTransactionID }
        return purchaseNumber(of: id).map { ids.purchase($0) }
    }
}
