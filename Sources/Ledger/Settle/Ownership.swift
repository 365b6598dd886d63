/// The key of a customer.
struct CustomerID: Hashable, Sendable {
    let number: Int64
}

/// A customer's claim to own the contents of an uploaded receipt.
struct OwnershipClaim: Hashable, Sendable {
    let customer: CustomerID
    /// The operator's own id of the customer.
    let name: String
    let imported: Bool
    /// Whether no settlement has resolved it yet. A claim that was resolved can only get what has no owner.
    let isNew: Bool
    /// Whether the customer only pointed at the contents: named a transaction, or sent a receipt for which Apple never
    /// vouched.
    var isPointer = false
}

/// The current owner of a subscription or purchase, and how often the owner changed lately.
struct Owner: Hashable, Sendable {
    var customer: CustomerID
    /// The operator's own id of the customer.
    var name: String
    /// The current ownership row; nil when this settlement made the customer the owner.
    var rowID: Int64?
    /// Transfers in the last 30 days.
    var transfers: Int
    /// Why the customer owns it; nil: unknown.
    var cause: OwnershipCause?

    /// Whether the customer only pointed at it. Such an owner yields to each customer who shows more.
    var isPointer: Bool { cause == .pointer }
}

/// Why a customer owns a subscription or purchase.
package enum OwnershipCause: String, Sendable, CaseIterable {
    /// The customer uploaded a receipt that contains it.
    case upload
    /// An import assigned it to the customer.
    case imported = "import"
    /// Its `app_account_token` names the customer.
    case token
    /// A device sent it with a proof of the customer's order.
    case proof
    /// It belonged to another name, which was merged into the customer.
    case merge
    /// The customer was merged into another one, and was split off again.
    case split
    /// A person assigned it to the customer.
    case assignment
    /// The customer only pointed at it, and no other one claims it.
    case pointer

    /// Whether a person decided it, not a receipt.
    var isByHand: Bool {
        switch self {
        case .upload, .imported, .token, .proof, .pointer: false
        case .merge, .split, .assignment: true
        }
    }
}

/// The result of a customer's claim to a subscription or purchase, with the reason.
package enum OwnershipAnswer: Hashable, Sendable {
    /// The customer owned it already.
    case held
    /// It had no owner; now the customer owns it.
    case assigned
    /// Another customer owned it; now this one does.
    case transferred
    /// Another customer still owns it; one sentence says why.
    case refused(String)
}

/// The most transfers of one subscription in 30 days; after that its owner keeps it.
let transfersMax = 3

/// Decides one claim by the app's policy; the customer whom the `app_account_token` names comes before every policy.
func decideOwnership(
    of claim: OwnershipClaim, owner: Owner?, named: OrderCustomers.Named? = nil, policy: OwnershipPolicy,
    givesAccess: Bool, staysWithCustomer: Bool = false
) -> OwnershipAnswer {
    guard let owner else { return .assigned }
    if owner.customer == claim.customer, !(named?.takes(from: owner, at: claim) ?? false) { return .held }
    if let named { return decideOwnership(of: claim, owner: owner, named: named) }
    if staysWithCustomer {
        return .refused("A consumable or non-renewing subscription stays with the customer who bought it.")
    }
    if claim.isPointer {
        return .refused("The id of a transaction alone takes nothing from an owner.")
    }
    if claim.imported, givesAccess {
        return .refused("An import does not take a live subscription from its owner.")
    }
    switch policy {
    case .keep:
        return .refused("The app's policy is that the first owner keeps it.")
    case .transferIfLapsed where givesAccess:
        return .refused("The app's policy transfers only what gives no access any more.")
    case .transfer, .transferIfLapsed:
        guard owner.transfers < transfersMax else {
            return .refused("It was transferred \(transfersMax) times in 30 days; its owner keeps it for now.")
        }
        return .transferred
    }
}

/// Decides a claim to what an account token names a customer for.
private func decideOwnership(
    of claim: OwnershipClaim, owner: Owner, named: OrderCustomers.Named
) -> OwnershipAnswer {
    if named.claim.customer == claim.customer { return .transferred }
    guard named.claim.customer == owner.customer else {
        return .refused("Its app_account_token names another customer.")
    }
    return .refused(named.isOrdered ? "Its owner ordered it." : "Its app_account_token names its owner.")
}

/// Returns the claim to assign where no token names a customer: of the owner of the rest of the receipt, else of the newest
/// uploader.
func firstOwner(among ownershipClaims: [OwnershipClaim], of receiptOwner: Owner?) -> OwnershipClaim? {
    guard let owner = receiptOwner else { return ownershipClaims.last }
    return ownershipClaims.last { $0.customer == owner.customer }
        ?? OwnershipClaim(
            customer: owner.customer, name: owner.name, imported: false, isNew: false,
            isPointer: ownershipClaims.allSatisfy(\.isPointer))
}

extension OwnershipClaim {
    /// The cause of the ownership that this claim gets.
    var cause: OwnershipCause { isPointer ? .pointer : imported ? .imported : .upload }
}
