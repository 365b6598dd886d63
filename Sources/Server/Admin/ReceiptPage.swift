import Foundation
import Hummingbird
import JSON
import Subscriptions
import Tracking

/// `GET /admin/receipts/{id}`: Apple's answers about a receipt, and the time of the next check.
struct ReceiptPage {
    static let answersMax = 200
    /// The shortest time between two manual checks of a receipt, in seconds.
    static let askedAgainSeconds = 60.0

    /// The result of a manual check, as the query names it.
    enum CheckResult: String, CaseIterable {
        case checked, lately, busy, nothing

        var sentence: String {
            switch self {
            case .checked: "Apple was asked just now; what it said is below."
            case .lately: "Apple was asked within the last minute already; try again in a minute."
            case .busy: "Apple could not be asked: another process asks, the app is paused, or its calls are used up."
            case .nothing: "There is no receipt that Apple could be asked about."
            }
        }
    }

    let id, formToken: String
    let facts, customers, answers: AdminTable

    static func path(of receipt: ReceiptID) -> String { "/admin/receipts/\(receipt)" }

    init(_ receipt: StoredReceipt, schedule: ReceiptSchedule?, answers: [RecordedAnswer], formToken: String) {
        id = receipt.id.description
        self.formToken = formToken
        facts = AdminTable("The receipt", facts: Self.facts(of: receipt, schedule))
        customers = AdminTable(
            "Who sent it", ["Customer"],
            receipt.customers.map { [.text($0, link: CustomerPage.path(of: $0, in: receipt.bundleID))] })
        self.answers = AdminTable(
            "What Apple answered, newest first; equal answers are one row", of: answers,
            empty: "Apple has not answered yet.",
            [
                ("Observation", { .text(String($0.observation)) }), ("Outcome", { .text($0.outcome) }),
                ("Status", { .text($0.status.map(String.init)) }), ("Reason", { .text($0.reason) }),
                ("Environment", { .text($0.environment) }), ("First", { .instant($0.firstAsOf) }),
                ("Last", { .instant($0.lastAsOf) }), ("Recorded", { .instant($0.recordedAt) }),
            ])
    }

    private static func facts(of receipt: StoredReceipt, _ schedule: ReceiptSchedule?) -> [(String, AdminTable.Cell)] {
        let known: [(String, AdminTable.Cell)] = [
            ("App", .text(receipt.bundleID.text)),
            ("Environment", .text(receipt.environment?.rawValue)),
            ("Last answer", .text(receipt.outcome ?? "none yet")),
            ("Reason", .text(receipt.reason)),
            ("Received", .instant(receipt.receivedAt)),
            ("Asked", .instant(receipt.askedAt)),
            ("Verified", .instant(receipt.verifiedAt)),
            ("Subscriptions", .text(receipt.subscriptions.map(\.text).joined(separator: ", "))),
        ]
        guard let schedule else {
            return known + [("Next check", .text("no more, until a new receipt or notification"))]
        }
        return known + [
            ("Next check", .instant(schedule.dueAt)),
            ("Lane", .text("\(schedule.lane)")),
            ("Tries since the last answer", .text(grouped(Int64(schedule.attempts)))),
            ("Being asked about", .text(schedule.isInFlight ? "yes" : "no")),
            ("App paused", .text(schedule.pausedBecause ?? "no")),
        ]
    }

    static func table(of receipts: [StoredReceipt]) -> AdminTable {
        AdminTable(
            "Receipts, newest first", of: receipts,
            [
                ("Receipt", { .text($0.id.description, link: path(of: $0.id)) }),
                ("Last answer", { .text($0.outcome ?? "none yet") }), ("Reason", { .text($0.reason) }),
                ("Received", { .instant($0.receivedAt) }), ("Asked", { .instant($0.askedAt) }),
                ("Next check", { .instant($0.nextCheckAt, orElse: "no more") }),
            ])
    }
}

extension AdminSite {
    func receipt(_ request: Request, _ context: AdminContext) async throws -> Response {
        let id = ReceiptID(try context.parameters.number("id", of: "receipt"))
        let ledger = tracker.ledger
        guard let stored = try await ledger.customers.receipts(id: id, limit: 1).first else {
            throw Problem(.notFound, "There is no receipt \(id).")
        }
        let content = ReceiptPage(
            stored, schedule: try await ledger.admin.schedule(of: id),
            answers: try await ledger.admin.answers(about: id, limit: ReceiptPage.answersMax),
            formToken: context.session.formToken)
        let result = request.query("result").flatMap(ReceiptPage.CheckResult.init(rawValue:))
        return try context.page("Receipt \(id)", "receipt", content, notice: result?.sentence)
    }

    /// `POST /admin/receipts/{id}/check`: asks Apple now, in the same way as an upload.
    func checkReceipt(_: Request, _ context: AdminContext) async throws -> Response {
        let id = ReceiptID(try context.parameters.number("id", of: "receipt"))
        let result = try await check(id, by: .key(context.session.keyID))
        return .redirect(to: address(ReceiptPage.path(of: id), ["result": result.rawValue]))
    }

    /// Asks Apple about a receipt, at most once a minute.
    func check(_ id: ReceiptID, by person: Actor) async throws -> ReceiptPage.CheckResult {
        let asked = try await tracker.ledger.admin.wasAsked(about: id, withinSeconds: ReceiptPage.askedAgainSeconds)
        guard let asked else { throw Problem(.notFound, "There is no receipt \(id).") }
        guard !asked else { return .lately }
        do {
            _ = try await tracker.check(id)
            try await tracker.ledger.acting(as: person).audit(.receiptChecked, receipt: id)
            return .checked
        } catch let error as LedgerError where error.kind == .busy {
            return .busy
        }
    }
}

/// One of Apple's answers as JSON, without the receipts in it.
struct AnswerJSON {
    /// The longest text that a page shows of it, in characters.
    static let charactersMax = 8_000

    private let answer: JSONValue

    init?(body: [UInt8]) {
        guard let document = JSONDocument(object: body), case .object(let members) = JSONValue(document) else {
            return nil
        }
        // A receipt is a secret of the customer, and too long for a page.
        answer = .object(members.filter { $0.key != "latest_receipt" })
    }

    /// Returns the row that holds a field, such as `latest_receipt_info[0].expires_date_ms`, or else the whole answer.
    func row(of path: String) -> String {
        let names = path.split(whereSeparator: { ".[]".contains($0) }).map(String.init)
        var value = answer
        for name in names.dropLast() {
            if case .array(let list) = value, let index = Int(name), list.indices.contains(index) {
                value = list[index]
            } else if case .object(let members) = value, let inner = members[name] {
                value = inner
            } else {
                return Self.text(of: answer)
            }
        }
        return Self.text(of: value)
    }

    private static func text(of value: JSONValue) -> String {
        if case .string(let text) = value { return text }
        let text = value.rendered(pretty: true)
        return text.count > charactersMax ? text.prefix(charactersMax) + "…" : text
    }
}
