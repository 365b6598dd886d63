import Foundation
import Hummingbird
import Subscriptions
import Tracking

/// `GET /admin/customer`: what one customer has, had, ordered, was given and sent, with an explanation.
struct CustomerPage {
    static let rowsMax = 200

    struct Action {
        let title, path: String
    }

    let app: String
    let actions, supportActions: [Action]
    /// What the customer may use, and why.
    let reasons: ReasonViews
    let grants: AdminTable?
    let subscriptions, purchases, timeline, events, receipts: AdminTable
    let bought: PurchaseTables

    static func path(of customer: String, in bundleID: BundleID) -> String {
        address("/admin/customer", ["app": bundleID.text, "id": customer])
    }

    init(
        _ explanation: CustomerExplanation, timeline: [RecordedSpan], events: [RecordedEvent],
        history: PurchaseHistory, receipts: [StoredReceipt], bodies: [Int64: [UInt8]]
    ) {
        bought = PurchaseTables(history)
        let (bundleID, customer) = (explanation.reasons.bundleID, explanation.reasons.customer)
        app = bundleID.text
        actions = CustomerAction.allCases.filter { $0 != .revoke }.map {
            Action(title: $0.title, path: ActionPage.path($0, customer, in: bundleID))
        }
        supportActions = SupportAction.ofCustomers.filter { !SupportItem.items(for: $0, of: explanation).isEmpty }.map {
            Action(title: $0.title, path: SupportPage.path($0, customer, in: bundleID))
        }
        reasons = ReasonViews(explanation, bodies: bodies)
        grants = Self.grants(explanation)
        subscriptions = Self.subscriptions(explanation)
        purchases = AdminTable(
            "One-time purchases", of: explanation.purchases, isStacked: true,
            [
                ("Transaction", { .text($0.state.transactionID.text) }),
                ("Product", { .text($0.state.facts.key.productID.text) }), ("Quantity", { .number($0.state.quantity) }),
                ("Purchased", { .instant($0.state.purchasedAt) }), ("Refunded", { .instant($0.state.revokedAt) }),
            ])
        self.timeline = AdminTable(
            "Timeline, newest period first; a period that begins later holds if nothing more is learnt", of: timeline,
            isStacked: true,
            [
                ("Subscription", { .text($0.originalTransactionID.text) }), ("From", { .instant($0.since) }),
                ("Until", { .instant($0.until, orElse: "open") }), ("State", { .state($0.state, $0.reason) }),
                ("Access", { .text($0.entitled ? "yes" : "no") }), ("Product", { .text($0.productID.text) }),
                ("Special", { .text($0.flags.isEmpty ? nil : $0.flags.joined(separator: ", ")) }),
            ])
        self.events = AdminTable(
            "What happened, newest first", of: events, isStacked: true,
            [
                ("Event", { .text($0.kind) }), ("Subscription", { .text($0.originalTransactionID.text) }),
                ("Product", { .text($0.productID.text) }), ("Happened", { .instant($0.occurredAt) }),
                ("Recorded", { .instant($0.recordedAt) }),
            ])
        self.receipts = ReceiptPage.table(of: receipts)
    }

    private static func subscriptions(_ explanation: CustomerExplanation) -> AdminTable {
        AdminTable(
            "Subscriptions", ["Subscription", "Product", "State", "Access until", "Expires", "Checked", "Next check"],
            isStacked: true,
            explanation.subscriptions.map { one in
                let verdict = one.verdict(at: explanation.reasons.at)
                let isAllowed = one.allowedUntil != nil
                let state = isAllowed ? State.awaitingRenewal : verdict.state
                let reason = isAllowed ? Reason.renewal : verdict.reason
                let until = one.allowedUntil ?? verdict.entitledUntil
                return [
                    .text(one.state.facts.originalTransactionID.text),
                    .text(
                        [verdict.productID.text, one.state.sale.words?.withReadableInstants].compactMap(\.self)
                            .joined(separator: ", ")),
                    .state(state.rawValue, reason?.rawValue),
                    .instant(until, orElse: "no access", toMinute: true), .instant(verdict.expiresAt, toMinute: true),
                    .instant(one.checkedAt, toMinute: true),
                    .instant(one.nextCheckAt, orElse: "no more", toMinute: true),
                ]
            })
    }

    private static func grants(_ explanation: CustomerExplanation) -> AdminTable? {
        let reasons = explanation.reasons
        let running = reasons.sources.filter { $0.isByHand && $0.granted }
        guard !running.isEmpty else { return nil }
        return AdminTable(
            "Manual grants", ["Entitlement", "Since", "Until", "By", "Why", "Action"],
            running.map { source in
                [
                    .text(source.entitlement), .instant(source.manualGrant?.since),
                    .instant(source.until, orElse: "no end"), .text(source.manualGrant?.givenBy),
                    .prose(source.manualGrant?.reason),
                    .text(
                        "End it",
                        link: ActionPage.path(
                            .revoke, reasons.customer, in: reasons.bundleID, entitlement: source.entitlement)),
                ]
            })
    }

    /// The sentence for a result that the query names; nil for another word.
    fileprivate static func sentence(for result: String) -> String? {
        ReceiptPage.CheckResult(rawValue: result)?.sentence ?? CustomerAction(rawValue: result)?.done
            ?? SupportAction.sentence(for: result)
    }
}

extension AdminSite {
    func customer(_ request: Request, _ context: AdminContext) async throws -> Response {
        guard let app = request.query("app"), let name = request.query("id") else {
            throw Problem(.invalid, "The address names no app and customer; look them up under Customers.")
        }
        let (ledger, bundleID) = (tracker.ledger, BundleID(app))
        let explanation = try await CustomerExplanation(in: ledger, app: bundleID, customer: name)
        guard explanation.reasons.isKnown else {
            throw Problem(.notFound, "No customer of the app \(bundleID) has the id \(name).")
        }
        let content = CustomerPage(
            explanation,
            timeline: try await ledger.admin.timelines(app: bundleID, customer: name, limit: CustomerPage.rowsMax),
            events: try await ledger.admin.events(app: bundleID, customer: name, limit: CustomerPage.rowsMax),
            history: try await ledger.customers.purchaseHistory(
                of: name, in: bundleID, limit: Int32(PurchaseTables.rowsMax)),
            receipts: try await ledger.customers.receipts(app: bundleID, customer: name, limit: CustomerPage.rowsMax),
            bodies: try await ledger.admin.bodies(
                of: Set(explanation.things.flatMap(\.steps).compactMap { $0.observation?.id })))
        return try context.page(
            "Customer \(name)", "customer", content,
            notice: request.query("result").flatMap(CustomerPage.sentence(for:)))
    }
}

/// The reasons for what a customer may use, as the page of the customer shows them.
struct ReasonViews {
    /// An entitlement with its answer and what did not decide.
    struct Right {
        let name, answer: String
        /// `yes` or `no`, for the style sheet.
        let style: String
        let source: String
        let losers: [String]
    }

    /// A subscription or a purchase with its conclusion.
    struct Thing {
        let title, conclusion: String
        let paid: String?
        let steps: [Step]
        let notes: [String]
    }

    /// One field of an answer that decided.
    struct Step {
        let sentence: String
        let field: String
        /// Where the field was seen, and since when.
        let source: String
        /// The part of Apple's answer that has the field; nil when the answer is no longer kept.
        let json: String?
        /// The receipt's page; nil likewise.
        let link: String?
        let linkTitle: String?
    }

    let summary: String
    let rights: [Right]
    let things: [Thing]
    let receipts: [String]

    /// Creates the views. `bodies` has Apple's answers by their numbers.
    init(_ explanation: CustomerExplanation, bodies: [Int64: [UInt8]]) {
        summary = explanation.summary.joined(separator: " ")
        rights = explanation.rights.map { right in
            let words = explanation.words(of: right)
            return Right(
                name: right.name, answer: words.answer.withReadableInstants,
                style: right.winner.granted ? "yes" : "no", source: words.source.withReadableInstants,
                losers: words.losses.map(\.withReadableInstants))
        }
        things = explanation.things.map { thing in
            Thing(
                title: thing.title, conclusion: thing.says.withReadableInstants, paid: thing.paid?.withReadableInstants,
                steps: thing.steps.map { Step($0, bodies) },
                notes: [thing.gap, thing.owner, thing.expected, thing.clocks].compactMap { $0?.withReadableInstants })
        }
        receipts = explanation.reasons.receipts.map { $0.sentence.withReadableInstants }
    }
}

extension ReasonViews.Step {
    fileprivate init(_ step: CustomerExplanation.Step, _ bodies: [Int64: [UInt8]]) {
        let seen = step.observation
        sentence = step.sentence.withReadableInstants
        field = "\(step.path) = \(step.value)"
        source =
            seen.map { "In an answer seen from \(readable($0.firstAsOf)) to \(readable($0.lastAsOf))." }
            ?? "In an answer that is no longer kept."
        json = seen.flatMap { bodies[$0.id] }.flatMap { AnswerJSON(body: $0)?.row(of: step.path) }
        link = seen.map { ReceiptPage.path(of: $0.receiptID) }
        linkTitle = seen.map { "Receipt \($0.receiptID)" }
    }
}

extension String {
    /// The text with its instants in ISO 8601 written for people.
    var withReadableInstants: String {
        replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) { match in
            Instant(iso8601: String(match.output)).map(readable) ?? String(match.output)
        }
    }
}

/// The tables of what a customer ordered, what was delivered, and the balances of credits.
struct PurchaseTables {
    /// The most orders, changes of each order, and deliveries.
    static let rowsMax = 100

    let orders, deliveries, balances: AdminTable
    let hasMoreOrders, hasMoreDeliveries: Bool
    let rowsMax = Self.rowsMax

    init(_ history: PurchaseHistory) {
        orders = AdminTable(
            "Orders, newest first", ["Order", "State", "Log", "Product", "Quantity", "Placed", "Paid", "Transaction"],
            history.orders.map(Self.row(of:)))
        deliveries = AdminTable(
            "Deliveries, newest first",
            ["Delivery", "State", "What", "Reason", "Product", "Since", "Settled", "By", "Why skipped"],
            history.deliveries.map(Self.row(of:)))
        balances = AdminTable(
            "Credits: what acknowledged deliveries gave, less what they took back", ["Credit", "Environment", "Units"],
            history.balances.map { [.text($0.credit), .text($0.environment.rawValue), .text(grouped($0.units))] })
        hasMoreOrders = history.hasMoreOrders
        hasMoreDeliveries = history.hasMoreDeliveries
    }

    private static func row(of logged: PurchaseHistory.LoggedOrder) -> [AdminTable.Cell] {
        let order = logged.order
        return [
            .text(order.id), .text("\(order.state.rawValue) (\(order.cause))"), .log(of: logged.changes),
            .text(order.productID.text), .number(order.quantity), .instant(order.createdAt),
            .instant(order.paidAt, orElse: "not paid"), .sandbox(order.transactionID, in: order.environment),
        ]
    }

    private static func row(of delivery: Delivery) -> [AdminTable.Cell] {
        [
            .text(String(delivery.id), link: DeliveryPage.path(of: delivery.id)), .text(delivery.state.rawValue),
            .sandbox(
                [delivery.action, delivery.unitsText].compactMap(\.self).joined(separator: " "),
                in: delivery.environment),
            .text(delivery.reason.replacing("_", with: " ")), .text(delivery.productID.text),
            .instant(delivery.createdAt), .instant(delivery.settledAt, orElse: "not yet"), .text(delivery.settledBy),
            .prose(delivery.skipReason),
        ]
    }
}

extension AdminTable.Cell {
    /// Returns a text, marked where it is about the sandbox.
    fileprivate static func sandbox(_ text: String?, in environment: StoreEnvironment?) -> AdminTable.Cell {
        .text(environment == .sandbox ? text.map { "\($0) (Sandbox)" } : text)
    }

    /// Returns the log of an order, which a reader opens.
    fileprivate static func log(of changes: [PurchaseHistory.Change]) -> AdminTable.Cell {
        let lines = changes.map { change in
            let code = change.code.map { ", code \($0)" } ?? ""
            return AdminTable.Line("\(change.state.rawValue) (\(change.cause)\(code))", at: change.at)
        }
        let isCut = lines.count >= PurchaseTables.rowsMax
        let summary = isCut ? "the newest \(lines.count)" : lines.count == 1 ? "1 change" : "\(lines.count) changes"
        return AdminTable.Cell(text: summary, list: AdminTable.List(summary: summary, lines: lines))
    }
}

extension Delivery {
    /// The units of a credit that it gives or takes back; nil where it is no consumable.
    var unitsText: String? {
        guard let units, let credit else { return nil }
        return "\(grouped(units)) \(credit)"
    }

    var action: String { (turn.isMultiple(of: 2) ? "takes back" : "gives") + (turn > 2 ? " again" : "") }
}
