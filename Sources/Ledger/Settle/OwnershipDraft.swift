import Subscriptions

/// The owner of a subscription or purchase during a settlement.
struct OwnershipDraft: Sendable {
    /// The stored owner.
    var owner: Owner?
    /// The new owner from this settlement.
    var newOwner: Owner?
    /// Why the new owner owns it.
    private(set) var cause: OwnershipCause?
    /// Whether it has no owner from now on.
    private(set) var isReleased = false
    /// The results of the uploads' claims, by receipt and customer.
    var answers: [ReceiptID: [AppCustomerID: OwnershipAnswer]] = [:]

    /// The owner after this settlement.
    var current: Owner? { isReleased ? nil : newOwner ?? owner }

    /// Whether a proof took it from another owner.
    var isClaimedByProof: Bool { cause == .proof && owner != nil }

    /// Whether this settlement changes the owner.
    var isChanged: Bool { newOwner != nil || isReleased }

    /// Gives it to a customer, whatever the policy; returns the event of the change, or nil when the customer owns it
    /// already.
    mutating func give(to customer: CustomerID, named name: String, because cause: OwnershipCause) -> EventKind? {
        let before = current
        guard before?.customer != customer else { return nil }
        newOwner = Owner(customer: customer, name: name, rowID: nil, transfers: before?.transfers ?? 0)
        self.cause = cause
        return before == nil ? .ownershipAssigned : .ownershipTransferred
    }

    /// Ends its ownership; it then has no owner.
    mutating func release() {
        isReleased = current != nil
    }

    /// Resolves the claims of a receipt's uploads, oldest first; returns the events of the changes.
    ///
    /// A subscription or purchase without an owner is assigned, whenever it appears in the receipt. Only a new upload
    /// can take one that has an owner. Where the policy lets the first owner keep it, `receiptOwner` gets new contents
    /// of the receipt. The customer of the order whose account token the transaction carries comes first.
    mutating func resolveOwnership(
        among ownershipClaims: [OwnershipClaim], of receipt: ReceiptID, ownedBy receiptOwner: Owner?,
        orderedBy customer: OwnershipClaim?, policy: OwnershipPolicy, accountToken: String?, givesAccess: Bool,
        staysWithCustomer: Bool = false
    ) -> [EventKind] {
        guard current != nil else {
            if let customer {
                return assignFirst(customer, among: ownershipClaims, of: receipt, because: .token)
            }
            let first = firstOwner(among: ownershipClaims, of: receiptOwner, accountToken: accountToken)
            return assignFirst(
                first, among: ownershipClaims, of: receipt, because: first?.cause(accountToken: accountToken))
        }
        return ownershipClaims.filter(\.isNew).compactMap { claim in
            let answer = decideOwnership(
                of: claim, owner: current, orderedBy: customer?.customer, policy: policy, accountToken: accountToken,
                givesAccess: givesAccess, staysWithCustomer: staysWithCustomer)
            answers[receipt, default: [:]][AppCustomerID(claim.name)] = answer
            return take(claim, answer, because: claim.cause(accountToken: accountToken))
        }
    }

    /// Assigns one of the claims at first sight; the other claims are not transfers.
    private mutating func assignFirst(
        _ first: OwnershipClaim?, among ownershipClaims: [OwnershipClaim], of receipt: ReceiptID,
        because cause: OwnershipCause?
    ) -> [EventKind] {
        guard let first, let cause else { return [] }
        for claim in ownershipClaims where claim.isNew && claim.customer != first.customer {
            answers[receipt, default: [:]][AppCustomerID(claim.name)] = .refused(
                "Another customer who uploaded it was served first.")
        }
        answers[receipt, default: [:]][AppCustomerID(first.name)] = .assigned
        return [take(first, .assigned, because: cause)].compactMap(\.self)
    }

    private mutating func take(
        _ claim: OwnershipClaim, _ answer: OwnershipAnswer, because cause: OwnershipCause
    ) -> EventKind? {
        switch answer {
        case .held, .refused:
            return nil
        case .assigned:
            self.cause = cause
            newOwner = Owner(customer: claim.customer, name: claim.name, rowID: nil, transfers: 0)
            return .ownershipAssigned
        case .transferred:
            self.cause = cause
            newOwner = Owner(
                customer: claim.customer, name: claim.name, rowID: nil, transfers: (current?.transfers ?? 0) + 1)
            return .ownershipTransferred
        }
    }
}
