import Subscriptions

/// A change of owner: a version of its own.
struct OwnershipChange: Sendable {
    /// The event; nil where a customer who only pointed at it showed more, and so stays the owner.
    let kind: EventKind?
    /// What the event adds. A transfer with one of these does not count among an app's transfers.
    let detail: [String: DetailValue]

    /// Returns the events of the change.
    func events(of product: ProductID, at instant: Instant) -> [Event] {
        kind.map { [Event(kind: $0, productID: product, occurredAt: instant, detail: detail)] } ?? []
    }
}

/// The owner of a subscription or purchase during a settlement.
struct OwnershipDraft: Sendable {
    /// The stored owner.
    var owner: Owner?
    /// The new owner from this settlement.
    private(set) var newOwner: Owner?
    /// Whether it has no owner from now on.
    private(set) var isReleased = false
    /// The results of the uploads' claims, by receipt and customer.
    var answers: [ReceiptID: [AppCustomerID: OwnershipAnswer]] = [:]

    /// The owner after this settlement.
    var current: Owner? { isReleased ? nil : newOwner ?? owner }

    /// The owner after this settlement, unless the customer only pointed at it: who gets deliveries and pays orders by it.
    var buyer: Owner? { current.flatMap { $0.isPointer ? nil : $0 } }

    /// Whether what is still due to the former owner is the new one's: a proof or an account token took it, or the former
    /// one only pointed at it.
    var takesDue: Bool {
        guard let owner, let newOwner, owner.customer != newOwner.customer else { return false }
        return owner.isPointer || newOwner.cause == .proof || newOwner.cause == .token
    }

    /// The customer who lost it to another one, without a merge or a split; nil where none did.
    var formerOwner: CustomerID? {
        guard let owner, let newOwner, !isReleased, owner.customer != newOwner.customer else { return nil }
        return newOwner.cause == .merge || newOwner.cause == .split ? nil : owner.customer
    }

    /// Whether this settlement changes the owner.
    var isChanged: Bool { newOwner != nil || isReleased }

    /// Gives it to a customer, whatever the policy; returns nil where nothing changes.
    ///
    /// What a customer pointed at stays a pointer through merges and splits.
    mutating func give(
        to customer: CustomerID, named name: String, because reason: OwnershipCause
    ) -> OwnershipChange? {
        let before = current
        let moves = reason == .merge || reason == .split
        let cause = moves && before?.isPointer == true ? .pointer : reason
        let isSame = before?.customer == customer
        if isSame, before?.isPointer == false || cause == .pointer { return nil }
        let counts = before != nil && before?.isPointer == false && !reason.isByHand
        newOwner = Owner(
            customer: customer, name: name, rowID: nil, transfers: (before?.transfers ?? 0) + (counts ? 1 : 0),
            cause: cause)
        guard before != nil else { return OwnershipChange(kind: .ownershipAssigned, detail: detail(reason)) }
        return OwnershipChange(
            kind: isSame ? nil : .ownershipTransferred, detail: detail(reason, fromPointer: before?.isPointer == true))
    }

    private func detail(_ reason: OwnershipCause, fromPointer: Bool = false) -> [String: DetailValue] {
        if reason.isByHand { return ["by_hand": .text(reason.rawValue)] }
        return fromPointer ? ["from_pointer": .flag(true)] : [:]
    }

    /// Ends its ownership; it then has no owner.
    mutating func release() {
        isReleased = current != nil
    }

    /// Resolves the claims of a receipt's uploads, oldest first; returns the changes.
    ///
    /// A subscription or purchase without an owner is assigned, whenever it appears in the receipt: to the customer whom
    /// the account token names, else by the claims. Where the policy lets the first owner keep it, `receiptOwner` gets new
    /// contents of the receipt. What a customer only pointed at counts as without an owner for the others. Only a new upload
    /// can take from another owner.
    mutating func resolveOwnership(
        among ownershipClaims: [OwnershipClaim], of receipt: ReceiptID, ownedBy receiptOwner: Owner?,
        named: OrderCustomers.Named?, policy: OwnershipPolicy, givesAccess: Bool, staysWithCustomer: Bool = false
    ) -> [OwnershipChange] {
        guard let owner = current, !owner.isPointer || named == nil && ownershipClaims.allSatisfy(\.isPointer) else {
            return assignFirst(named, among: ownershipClaims, of: receipt, ownedBy: receiptOwner)
        }
        return ownershipClaims.filter(\.isNew).compactMap { claim in
            guard let before = current else { return nil }
            let answer = decideOwnership(
                of: claim, owner: before, named: named, policy: policy, givesAccess: givesAccess,
                staysWithCustomer: staysWithCustomer)
            answers[receipt, default: [:]][AppCustomerID(claim.name)] = answer
            if let named, named.takes(from: before, at: claim) {
                return give(to: named.claim.customer, named: named.claim.name, because: .token)
            }
            switch answer {
            case .held, .refused: return nil
            case .assigned, .transferred: return give(to: claim.customer, named: claim.name, because: claim.cause)
            }
        }
    }

    /// Assigns it to the customer whom the token names, else by one of the claims; the other claims are not transfers.
    private mutating func assignFirst(
        _ named: OrderCustomers.Named?, among ownershipClaims: [OwnershipClaim], of receipt: ReceiptID,
        ownedBy receiptOwner: Owner?
    ) -> [OwnershipChange] {
        guard let first = named?.claim ?? firstOwner(among: ownershipClaims, of: receiptOwner) else { return [] }
        let why =
            named == nil
            ? "Another customer who uploaded it was served first." : "Its app_account_token names another customer."
        for claim in ownershipClaims where claim.isNew && claim.customer != first.customer {
            answers[receipt, default: [:]][AppCustomerID(claim.name)] = .refused(why)
        }
        let before = current
        let change = give(to: first.customer, named: first.name, because: named == nil ? first.cause : .token)
        answers[receipt, default: [:]][AppCustomerID(first.name)] =
            before == nil ? .assigned : before?.customer == first.customer ? .held : .transferred
        return [change].compactMap(\.self)
    }
}
