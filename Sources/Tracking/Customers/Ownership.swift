import Postgres
import SQL
import Subscriptions

struct CustomerID: Hashable, Sendable {
    let number: Int64
}

/// A customer who claims to own the contents of an uploaded receipt.
struct Claimant: Hashable, Sendable {
    let customer: CustomerID
    let name: String
    let imported: Bool
    /// Whether no settlement has resolved the claim yet. One that was resolved can only get what has no owner.
    let isNew: Bool
    /// Whether the customer only named a transaction, or sent a receipt for which Apple never vouched.
    var isPointer = false

    var cause: OwnershipCause { isPointer ? .pointer : imported ? .imported : .upload }
}

/// The current owner of a subscription or purchase, and how often the owner changed lately.
struct Owner: Hashable, Sendable {
    var customer: CustomerID
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
    of claimant: Claimant, owner: Owner?, named: OrderCustomers.Named? = nil, policy: OwnershipPolicy,
    givesAccess: Bool, staysWithCustomer: Bool = false
) -> OwnershipAnswer {
    guard let owner else { return .assigned }
    if owner.customer == claimant.customer, !(named?.takes(from: owner, at: claimant) ?? false) { return .held }
    if let named { return decideOwnership(of: claimant, owner: owner, named: named) }
    if staysWithCustomer {
        return .refused("A consumable or non-renewing subscription stays with the customer who bought it.")
    }
    if claimant.isPointer {
        return .refused("The id of a transaction alone takes nothing from an owner.")
    }
    if claimant.imported, givesAccess {
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
private func decideOwnership(of claimant: Claimant, owner: Owner, named: OrderCustomers.Named) -> OwnershipAnswer {
    if named.claimant.customer == claimant.customer { return .transferred }
    guard named.claimant.customer == owner.customer else {
        return .refused("Its app_account_token names another customer.")
    }
    return .refused(named.isOrdered ? "Its owner ordered it." : "Its app_account_token names its owner.")
}

/// Returns the claimant who gets it where no token names a customer: of the rest's owner, else of the newest uploader.
func firstOwner(among claimants: [Claimant], of receiptOwner: Owner?) -> Claimant? {
    guard let owner = receiptOwner else { return claimants.last }
    return claimants.last { $0.customer == owner.customer }
        ?? Claimant(
            customer: owner.customer, name: owner.name, imported: false, isNew: false,
            isPointer: claimants.allSatisfy(\.isPointer))
}

/// A change of owner: a version of its own.
struct OwnershipChange: Sendable {
    /// The event; nil where a customer who only pointed at it showed more, and so stays the owner.
    let kind: EventKind?
    /// What the event adds. A transfer with one of these does not count among an app's transfers.
    let detail: [String: DetailValue]

    func events(of product: ProductID, at instant: Instant) -> [Event] {
        kind.map { [Event(kind: $0, productID: product, occurredAt: instant, detail: detail)] } ?? []
    }
}

struct OwnershipDraft: Sendable {
    var owner: Owner?
    private(set) var newOwner: Owner?
    /// Whether it has no owner from now on.
    private(set) var isReleased = false
    /// The results of the uploads' claims, by receipt and customer.
    var answers: [ReceiptID: [AppCustomerID: OwnershipAnswer]] = [:]

    /// The owner after this settlement.
    var current: Owner? { isReleased ? nil : newOwner ?? owner }

    /// The owner after this settlement, unless a mere pointer: who gets deliveries and pays orders by it.
    var buyer: Owner? { current.flatMap { $0.isPointer ? nil : $0 } }

    /// The customer who lost it to another one, not by a merge or split; the new owner gets what is still to be given.
    var formerOwner: CustomerID? {
        guard let owner, let newOwner, !isReleased, owner.customer != newOwner.customer else { return nil }
        return newOwner.cause == .merge || newOwner.cause == .split ? nil : owner.customer
    }

    /// Whether the new owner also takes what is due of the former one's orders, which the policy alone does not give.
    var takesOrdered: Bool {
        switch newOwner?.cause {
        case .token, .proof, .assignment: true
        case .upload, .imported, .pointer, .merge, .split, nil: owner?.isPointer ?? false
        }
    }

    var isChanged: Bool { newOwner != nil || isReleased }

    /// Gives it to a customer, whatever the policy; nil where nothing changes. Merges and splits leave a pointer one.
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
    mutating func release() { isReleased = current != nil }

    /// Resolves the claims of a receipt's uploads, oldest first; returns the changes.
    ///
    /// What has no owner is assigned: to the customer whom the account token names, else by the claims. Where the
    /// policy lets the first owner keep it, `receiptOwner` gets it. What a customer only pointed at counts as without
    /// an owner for the others. Only a new upload can take from another owner.
    mutating func resolveOwnership(
        among claimants: [Claimant], of receipt: ReceiptID, ownedBy receiptOwner: Owner?,
        named: OrderCustomers.Named?, policy: OwnershipPolicy, givesAccess: Bool, staysWithCustomer: Bool = false
    ) -> [OwnershipChange] {
        guard let owner = current, !owner.isPointer || named == nil && claimants.allSatisfy(\.isPointer) else {
            return assignFirst(named, among: claimants, of: receipt, ownedBy: receiptOwner)
        }
        return claimants.filter(\.isNew).compactMap { claimant in
            guard let before = current else { return nil }
            let answer = decideOwnership(
                of: claimant, owner: before, named: named, policy: policy, givesAccess: givesAccess,
                staysWithCustomer: staysWithCustomer)
            answers[receipt, default: [:]][AppCustomerID(claimant.name)] = answer
            if let named, named.takes(from: before, at: claimant) {
                return give(to: named.claimant.customer, named: named.claimant.name, because: .token)
            }
            switch answer {
            case .held, .refused: return nil
            case .assigned, .transferred:
                return give(to: claimant.customer, named: claimant.name, because: claimant.cause)
            }
        }
    }

    /// Assigns it to the customer whom the token names, else by one of the claims; the other claims are not transfers.
    private mutating func assignFirst(
        _ named: OrderCustomers.Named?, among claimants: [Claimant], of receipt: ReceiptID,
        ownedBy receiptOwner: Owner?
    ) -> [OwnershipChange] {
        let before = current
        // Who only pointed at it yields to the one who shows more, and not to who owns the rest.
        let first = named?.claimant ?? firstOwner(among: claimants, of: before == nil ? receiptOwner : nil)
        guard let first else { return [] }
        let why =
            named == nil
            ? "Another customer who uploaded it was served first." : "Its app_account_token names another customer."
        for claimant in claimants where claimant.isNew && claimant.customer != first.customer {
            answers[receipt, default: [:]][AppCustomerID(claimant.name)] = .refused(why)
        }
        let change = give(to: first.customer, named: first.name, because: named == nil ? first.cause : .token)
        answers[receipt, default: [:]][AppCustomerID(first.name)] =
            before == nil ? .assigned : before?.customer == first.customer ? .held : .transferred
        return [change].compactMap(\.self)
    }
}

private struct OwnershipWrite {
    let draft: OwnershipDraft
    var subscriptionID: Int64?
    var purchaseID: Int64?
    let recordedMicroseconds: Int64
}

extension SettlementRun {
    /// Resolves what has an owner first, who may get the rest of the receipt. What no customer uploaded goes to those
    /// whom its account tokens name, else to those who sent other receipts with the same contents.
    mutating func resolveOwnership(of settlement: Settlement) {
        let (receipt, claimants) = (settlement.claim.receiptID, claimants(of: settlement))
        guard !claimants.isEmpty || !orderCustomers.isEmpty else { return }
        let policy = settlement.claim.app.ownershipPolicy
        let (keys, bought) = contents(of: settlement)
        for isOwned in [true, false] {
            let owner =
                isOwned || claimants.isEmpty
                ? nil : receiptOwner(of: keys, bought, among: claimants, policy: policy)
            for key in keys where (subscriptions[key]?.ownership.buyer != nil) == isOwned {
                let token = subscriptions[key]?.state?.facts.appAccountToken
                subscriptions[key]?.resolveOwnership(
                    among: claimants, of: receipt, ownedBy: owner,
                    named: orderCustomers.named(by: token, appID: key.appID), policy: policy)
            }
            for key in bought where (purchases[key]?.ownership.buyer != nil) == isOwned {
                let token = purchases[key]?.state?.facts.appAccountToken?.value
                purchases[key]?.resolveOwnership(
                    among: claimants, of: receipt, ownedBy: owner,
                    named: orderCustomers.named(by: token, appID: key.appID), policy: policy)
            }
        }
        takeByTokens(keys, bought, sentBy: orderReceipts.orders(of: receipt).filter { $0.isProved && $0.isNew })
    }

    /// Gives what a device has just sent with a proof to the customers whom its account tokens name, as an upload does.
    private mutating func takeByTokens(
        _ keys: [SubscriptionRowKey], _ bought: [PurchaseRowKey], sentBy sent: [OrderReceipts.Sent]
    ) {
        func taker(from owner: Owner?, by token: String?, appID: Int32) -> Claimant? {
            guard let owner, let named = orderCustomers.named(by: token, appID: appID) else { return nil }
            return sent.contains { named.takes(from: owner, at: $0.customer) } ? named.claimant : nil
        }
        for key in keys {
            let token = subscriptions[key]?.state?.facts.appAccountToken
            if let claimant = taker(from: subscriptions[key]?.ownership.current, by: token, appID: key.appID) {
                subscriptions[key]?.give(to: claimant.customer, named: claimant.name, because: .token)
            }
        }
        for key in bought {
            let token = purchases[key]?.state?.facts.appAccountToken?.value
            if let claimant = taker(from: purchases[key]?.ownership.current, by: token, appID: key.appID) {
                purchases[key]?.give(to: claimant.customer, named: claimant.name, because: .token)
            }
        }
    }

    /// Returns the owner of the receipt's contents where the policy lets the first owner keep them; of several owners,
    /// the earliest uploader. The proof of an order gives what pays the order alone: the receipt may be stolen.
    private func receiptOwner(
        of keys: [SubscriptionRowKey], _ bought: [PurchaseRowKey], among claimants: [Claimant],
        policy: OwnershipPolicy
    ) -> Owner? {
        switch policy {
        case .transfer: return nil
        case .keep, .transferIfLapsed: break
        }
        let owners =
            keys.sorted().compactMap { subscriptions[$0]?.ownership.buyer }
            + bought.sorted().compactMap { purchases[$0]?.ownership.buyer }
        let earliest = claimants.lazy.compactMap { claimant in owners.first { $0.customer == claimant.customer } }.first
        return earliest ?? owners.first { $0.cause != .proof }
    }
}

/// A bare transaction id (of a notification or a customer who only points at it) proves no owner, and neither does a
/// receipt that no customer sent. The customers who sent other receipts with the same contents own what it shows first.
extension SettlementRun {
    /// The claimants by whom an answer's contents get owners: those of its receipt, and where that proves no owner those
    /// of receipts that share contents. These can only get what has no owner, and who only points comes last.
    func claimants(of settlement: Settlement) -> [Claimant] {
        let own = claimants[settlement.claim.receiptID] ?? []
        guard provesNoOwner(settlement) else { return own }
        let beside = batch.filter {
            $0.evidence != nil && $0.claim.form != .transactionID && sharesContents($0, settlement)
        }.flatMap { claimants[$0.claim.receiptID] ?? [] }
        let shared = (sharedClaimants[settlement.claim.receiptID] ?? []) + beside.map(\.settled)
        let believed = shared.filter { !$0.isPointer }
        if !believed.isEmpty { return own + believed }
        return own.isEmpty ? shared : own
    }

    private func provesNoOwner(_ settlement: Settlement) -> Bool {
        settlement.claim.form == .transactionID || claimants[settlement.claim.receiptID] == nil
    }

    func sharedClaimants(in transaction: Transaction) throws -> [ReceiptID: [Claimant]] {
        var held: [(receipt: Int64, subscription: Int64)] = []
        var bought: [(receipt: Int64, purchase: Int64)] = []
        for settlement in batch where settlement.evidence != nil && provesNoOwner(settlement) {
            let receipt = settlement.claim.receiptID.number
            let contents = contents(of: settlement)
            held += contents.subscriptions.compactMap { key in subscriptions[key].map { (receipt, $0.rowID) } }
            bought += contents.purchases.compactMap { key in purchases[key].map { (receipt, $0.rowID) } }
        }
        guard !held.isEmpty || !bought.isEmpty else { return [:] }
        let rows = try transaction.query(
            Queries.readSharedUploads, .int8s(held.map(\.receipt)), .int8s(held.map(\.subscription)),
            .int8s(bought.map(\.receipt)), .int8s(bought.map(\.purchase)))
        return try rows.reduce(into: [:]) { claimants, row in
            claimants[ReceiptID(try row.int8("receipt_id")), default: []].append(
                try Claimant(row: row, isNew: false, isPointer: row.bool("is_pointer")))
        }
    }

    private func sharesContents(_ left: Settlement, _ right: Settlement) -> Bool {
        let (these, those) = (contents(of: left), contents(of: right))
        return !Set(these.subscriptions).isDisjoint(with: those.subscriptions)
            || !Set(these.purchases).isDisjoint(with: those.purchases)
    }
}

extension Claimant {
    /// The same claimant, who can only get what has no owner.
    fileprivate var settled: Claimant {
        Claimant(customer: customer, name: name, imported: imported, isNew: false, isPointer: isPointer)
    }

    init(row: Row, isNew: Bool, isPointer: Bool) throws {
        self.init(
            customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
            imported: try row.bool("imported"), isNew: isNew, isPointer: isPointer)
    }
}

extension SettlementRun {
    /// Writes new owners and marks the uploads whose claims were resolved.
    func writeOwnerships(in transaction: Transaction) throws {
        let kept = subscriptions.values.lazy.filter(\.ownership.isChanged).map {
            OwnershipWrite(draft: $0.ownership, subscriptionID: $0.rowID, recordedMicroseconds: $0.recordedMicroseconds)
        }
        let bought = purchases.values.lazy.filter(\.ownership.isChanged).map {
            OwnershipWrite(draft: $0.ownership, purchaseID: $0.rowID, recordedMicroseconds: $0.recordedMicroseconds)
        }
        let changes = Array(kept) + bought
        let ended = changes.filter { $0.draft.owner?.rowID != nil }
        if !ended.isEmpty {
            try transaction.query(
                Queries.endOwnerships, .int8s(ended.map(\.draft.owner?.rowID)),
                .timestamptzs(ended.map(\.recordedMicroseconds)))
        }
        let begun = changes.filter { $0.draft.current != nil }
        if !begun.isEmpty {
            try transaction.query(
                Queries.insertOwnerships,
                .int8s(begun.map(\.subscriptionID)), .int8s(begun.map(\.purchaseID)),
                .int8s(begun.map(\.draft.current?.customer.number)),
                // Without a previous owner the new one owns it from the end of the last ownership, if any.
                .timestamptzs(begun.map { $0.draft.owner?.rowID == nil ? nil : $0.recordedMicroseconds }),
                .timestamptzs(begun.map(\.recordedMicroseconds)),
                .texts(begun.map(\.draft.newOwner?.cause?.rawValue)))
        }
        try markResolvedUploads(in: transaction)
    }

    private func markResolvedUploads(in transaction: Transaction) throws {
        let resolved = batch.filter { $0.evidence != nil }.flatMap { settlement in
            (claimants[settlement.claim.receiptID] ?? []).filter(\.isNew).map {
                (settlement.claim.receiptID.number, $0.customer.number)
            }
        }
        guard !resolved.isEmpty else { return }
        try transaction.query(Queries.settleUploads, .int8s(resolved.map(\.0)), .int8s(resolved.map(\.1)))
    }
}
