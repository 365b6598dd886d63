import Foundation
import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// One thing that is bought, and what two or three customers do about it.
private struct OwnerStory: CustomStringConvertible {
    enum Token { case missing, nobody, customer(Int), order(of: Int) }

    enum Step {
        case show(Showing, by: Int, imported: Bool)
        /// verifyReceipt vouches for the customer's receipt for which it did not vouch before.
        case vouch(Int)
        /// A device sends its receipt with the proof of a new order.
        case prove(Int)
        /// The customer uploads something else.
        case appear(Int)
        case merge(Int, into: Int)
        case acknowledge
    }

    /// What tells it from every other story, and is its transaction.
    let id: String
    /// The ids of the customers; a token is one of them, in lower case.
    let names: [String]
    let product: ProductID
    /// Whether the subscription gives no access any more.
    let isLapsed: Bool
    let token: Token
    /// Whether all customers have one receipt for which Apple vouches.
    let isShared: Bool
    var steps: [Step]

    init(_ id: String, _ random: inout Seeded) {
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
        self.id = id
        let count = Int.random(in: 2...3, using: &random)
        func customer() -> Int { .random(in: 0..<count, using: &random) }
        names = (0..<count).map { place in
            let name = "0000000\(place)-0000-4000-8000-\(String(repeating: "a", count: 12 - id.count))\(id)"
            return place == 1 ? name.uppercased() : name
        }
        product = ["coins", "coins", "themes", "monthly"].randomElement(using: &random) ?? "coins"
        isLapsed = product == "monthly" && chance(3)
        token =
            [.missing, .nobody, .customer(customer()), .customer(customer()), .order(of: customer())]
            .randomElement(using: &random) ?? .missing
        isShared = chance(2)
        let (isCalm, prover) = (chance(2), customer())
        let hasProofs = if case .order = token { false } else { product == "coins" && chance(2) }
        steps = (0..<Int.random(in: 2...7, using: &random)).map { _ in
            let (who, showing) = (customer(), Showing.allCases.randomElement(using: &random) ?? .receipt)
            let shown = Step.show(showing, by: who, imported: showing == .receipt && !isCalm && chance(4))
            switch Int.random(in: 0..<12, using: &random) {
            case 0: return .appear(who)
            case 1 where !isCalm: return .acknowledge
            case 2 where !isCalm: return .vouch(who)
            case 3 where !isCalm && !hasProofs: return .merge(who, into: customer())
            case 4,
                5 where !isCalm && hasProofs:
                return .prove(prover)
            default: return shown
            }
        }
    }

    /// The same story of other customers, told in another order.
    init(_ other: OwnerStory, as id: String, _ random: inout Seeded) {
        self.init(other, id: id, steps: other.steps.shuffled(using: &random))
    }

    private init(_ other: OwnerStory, id: String, steps: [Step]) {
        (self.id, self.steps) = (id, steps)
        names = other.names.map { String($0.dropLast(id.count)) + id }
        (product, isLapsed, token, isShared) = (other.product, other.isLapsed, other.token, other.isShared)
    }

    var description: String {
        "\(id) \(product) \(isLapsed ? "lapsed " : "")token \(token) shared \(isShared): \(steps)"
    }

    /// Whether the rule leaves no choice to the order of the steps: the token's customer shows it, else one customer alone
    /// shows it by more than a pointer, and nothing was carried out or decided by a person meanwhile.
    var hasOneEnding: Bool {
        var (shown, pointed): (Set<Int>, Set<Int>) = ([], [])
        for step in steps {
            switch step {
            case .show(.receipt, let who, false), .show(.signedTransaction, let who, false): shown.insert(who)
            case .show(.transactionID, let who, false), .show(.unvouchedReceipt, let who, false): pointed.insert(who)
            case .appear: break
            case .show, .vouch, .prove, .merge, .acknowledge: return false
            }
        }
        switch token {
        case .order: return true
        case .customer(let named) where shown.union(pointed).contains(named): return true
        case .customer(let named) where steps.contains { if case .appear(named) = $0 { true } else { false } }:
            return false
        case .missing, .nobody, .customer: return shown.count == 1 || shown.isEmpty && pointed.count <= 1
        }
    }
}

/// Who owns it at the end, and who got what it gives.
private struct OwnerEnding: Equatable, CustomStringConvertible {
    var owner: Int?
    var credited: Int?

    var description: String { "owner \(owner.map(String.init) ?? "-"), credited \(credited.map(String.init) ?? "-")" }
}

/// The rule of owners in its plainest form.
private struct OwnerRule {
    let story: OwnerStory
    let policy: OwnershipPolicy
    private(set) var owner: Int?
    private(set) var cause: OwnershipCause?
    private var due: Int?
    private var given: Int?
    private var known: Set<Int> = []
    private var vouched: Set<Int> = []
    private var uploads: [(Showing, by: Int)] = []
    private var heads = [0, 1, 2]
    private var transfers = 0

    init(_ story: OwnerStory, _ policy: OwnershipPolicy) {
        (self.story, self.policy) = (story, policy)
        if case .order(let buyer) = story.token { known.insert(buyer) }
        for step in story.steps { take(step) }
    }

    var ending: OwnerEnding {
        let credited = story.product == "themes" ? (cause == .pointer ? nil : owner) : (given ?? due).map { heads[$0] }
        return OwnerEnding(owner: owner, credited: credited)
    }

    private var named: Int? {
        switch story.token {
        case .missing, .nobody: nil
        case .order(let buyer): heads[buyer]
        case .customer(let one): known.contains(one) ? heads[one] : nil
        }
    }

    private mutating func take(_ step: OwnerStory.Step) {
        switch step {
        case .appear(let who): known.insert(who)
        case .acknowledge: given = given ?? due
        case .merge(let from, let into):
            guard from != into, known.contains(from), heads[from] == from, heads[into] == into else { return }
            known.insert(into)
            heads = heads.map { $0 == from ? into : $0 }
            if owner == from { (owner, cause) = (into, cause == .pointer ? .pointer : .merge) }
        case .show(let showing, let who, let imported):
            known.insert(who)
            let isKnown = uploads.contains { $0 == showing && ($1 == who || story.isShared && heads[$1] == heads[who]) }
            uploads.append((showing, by: who))
            let isPointer = showing == .transactionID || showing == .unvouchedReceipt && !vouched.contains(who)
            // An import of what the customer uploaded before claims nothing.
            claim(heads[who], isPointer ? .pointer : imported ? .imported : .upload, isNew: !imported || !isKnown)
        case .vouch(let who):
            guard uploads.contains(where: { $0 == .unvouchedReceipt && $1 == who }) else { return }
            vouched.insert(who)
            claim(heads[who], .upload, isNew: false)
        case .prove(let who):
            known.insert(who)
            let isFree = owner == nil || cause == .pointer
            if isFree || cause == .upload && given == nil && owner != heads[who], named == nil || named == heads[who] {
                give(to: heads[who], .proof)
            } else if isFree, let named {
                give(to: named, .token)
            }
        }
    }

    private mutating func claim(_ who: Int, _ way: OwnershipCause, isNew: Bool) {
        if owner == nil || cause == .pointer && (named != nil || way != .pointer) {
            give(to: named ?? who, named == nil ? way : .token)
        } else if let named, isNew, owner != named {
            give(to: named, .token)
        } else if named == nil, isNew, owner != who, way != .pointer, story.product != "coins",
            way != .imported || story.isLapsed, policy == .transfer || policy == .transferIfLapsed && story.isLapsed,
            transfers < 3
        {
            give(to: who, way)
        }
    }

    private mutating func give(to who: Int, _ way: OwnershipCause) {
        let moves = way == .token || way == .proof || cause == .pointer
        if owner != nil, cause != .pointer, owner != who { transfers += 1 }
        (owner, cause) = (who, way)
        if way != .pointer, due == nil || moves { due = who }
    }
}

@Suite("Owners and credited units are the same in every arrival order")
struct OwnerStoryTests {
    private static let stories = ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] == nil ? 12 : 600

    @Test("What the ledger ends with equals the plain rule, in every order", arguments: OwnershipPolicy.allCases)
    func stories(policy: OwnershipPolicy) async throws {
        try await withLedger(policy: policy) { test in
            try await test.sellDeliverables()
            var random = Seeded(seed: 77_001)
            print(random)
            let stories = (0..<Self.stories).flatMap { number in
                let story = OwnerStory("\(100_000 + 10 * number)", &random)
                return [story]
                    + (1...2).map { OwnerStory(story, as: "\(100_000 + 10 * number + $0)", &random) }
            }
            var telling = Telling(stories, test, random)
            let endings = try await telling.endings()
            for (number, story) in stories.enumerated() {
                let expected = OwnerRule(story, policy).ending
                #expect(endings[story.id] == expected, "\(random) \(policy) \(story)")
                if story.hasOneEnding {
                    #expect(expected == OwnerRule(stories[number / 3 * 3], policy).ending, "\(story)")
                }
            }
            #expect(stories.count { $0.hasOneEnding } > Self.stories / 2)
            #expect(try await test.violations([.ownership, .deliveries, .orders, .entitlements, .events]) == [])
        }
    }
}

/// Tells stories to a ledger: the first steps of all of them, then the second ones.
private struct Telling {
    let stories: [OwnerStory]
    let test: TestLedger
    /// The account token of each story.
    private var tokens: [String: String] = [:]
    /// The receipts for which Apple does not vouch, by story and customer.
    private var pointing: [String: ReceiptID] = [:]
    /// The customers of each story who are known, and those who were merged.
    private var (known, merged): (Set<String>, Set<String>) = ([], [])
    private var random: Seeded

    init(_ stories: [OwnerStory], _ test: TestLedger, _ random: Seeded) {
        (self.stories, self.test, self.random) = (stories, test, random)
    }

    mutating func endings() async throws -> [String: OwnerEnding] {
        for story in stories {
            switch story.token {
            case .missing: break
            case .nobody: tokens[story.id] = UUID().uuidString
            case .customer(let named): tokens[story.id] = story.names[named].lowercased()
            case .order(let buyer):
                let order = try await test.place(story.product, by: story.names[buyer], days: -95)
                tokens[story.id] = order.appAccountToken
                known.insert(story.names[buyer])
            }
        }
        for place in 0..<(stories.map(\.steps.count).max() ?? 0) {
            var settlements: [Settlement] = []
            for story in stories where place < story.steps.count {
                if let one = try await take(story.steps[place], of: story, asOf: -1 + Double(place) / 1_000) {
                    settlements.append(one)
                }
            }
            let parts = Bool.random(using: &random) ? [settlements] : settlements.map { [$0] }
            for part in parts {
                let batch = try await test.ledger.settlements.settleInFull(part)
                #expect(batch.failures.map(\.reason) == [])
            }
        }
        repeat {
            try await acknowledge(nil)
        } while try await test.text("SELECT count(*) FROM ledger.due_delivery") != "0"
        return try await read()
    }

    /// Takes a step; returns the answer that it brings.
    private mutating func take(_ step: OwnerStory.Step, of story: OwnerStory, asOf: Double) async throws -> Settlement?
    {
        switch step {
        case .appear(let who):
            try await test.upload("other \(story.id) \(who)", by: story.names[who])
            known.insert(story.names[who])
            return nil
        case .acknowledge:
            try await acknowledge(story.id)
            return nil
        case .merge(let from, let into):
            let (old, new) = (story.names[from], story.names[into])
            guard from != into, known.contains(old), !merged.contains(old), !merged.contains(new) else { return nil }
            _ = try await test.ledger.customers.merge(
                old, into: new, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "same"))
            known.insert(new)
            merged.insert(old)
            return nil
        case .vouch(let who):
            guard let receipt = pointing["\(story.id) \(who)"] else { return nil }
            return test.settlement(try await test.claim(receipt), finding(of: story, asOf: asOf))
        case .prove(let who):
            known.insert(story.names[who])
            let order = try await test.place(story.product, by: story.names[who], days: -95)
            let receipt = try await test.send("device \(story.id)", for: order)
            return test.settlement(try await test.claim(receipt), finding(of: story, asOf: asOf))
        case .show(let showing, let who, let imported):
            known.insert(story.names[who])
            let text =
                switch showing {
                case .receipt: story.isShared ? "receipt \(story.id)" : "receipt \(story.id) \(who)"
                case .signedTransaction, .transactionID: story.id
                case .unvouchedReceipt: "unvouched \(story.id) \(who)"
                }
            let upload = showing.upload(text, by: story.names[who], of: test.app, imported: imported)
            let receipt = try #require(try await test.ledger.intake.store([upload]).first).receiptID
            if showing == .unvouchedReceipt { pointing["\(story.id) \(who)"] = receipt }
            return Settlement(
                claim: try await test.claim(receipt), finding: finding(of: story, asOf: asOf),
                body: Array("{}".utf8), latestReceipt: nil, server: showing.read)
        }
    }

    private func finding(of story: OwnerStory, asOf: Double) -> Finding {
        guard story.product == "monthly" else {
            let bought = test.bought([(story.id, story.product)], asOf: asOf)
            return tokens[story.id].map { bought.carrying($0) } ?? bought
        }
        return Answer(from: test.at(story.isLapsed ? -90 : -9), asOf: test.at(asOf)).but { answer in
            answer.subscription = OriginalTransactionID(story.id)
            (answer.token, answer.willRenew) = (tokens[story.id], !story.isLapsed)
        }.finding
    }

    private func acknowledge(_ transaction: String?) async throws {
        let due = try await test.database.query(
            .test(
                """
                SELECT d.delivery_id FROM ledger.due_delivery q JOIN ledger.delivery d USING (delivery_id)
                WHERE $1::text IS NULL OR d.original_transaction_id = $1::text
                LIMIT \(LedgerDeliveries.acknowledgedMax)
                """), [.text(transaction)])
        _ = try await test.ledger.deliveries.acknowledge(
            try due.map { try $0.int8("delivery_id") }, of: test.app.bundleID)
    }

    private func read() async throws -> [String: OwnerEnding] {
        let places = Dictionary(
            uniqueKeysWithValues: stories.flatMap { story in story.names.enumerated().map { ($1, $0) } })
        let rows = try await test.database.query(
            .test(
                """
                SELECT b.original_transaction_id, b.customer, (
                           SELECT string_agg(format('%s %s', g.name, g.times), ', ')
                           FROM (SELECT head.name, sum(CASE d.turn % 2 WHEN 1 THEN 1 ELSE -1 END) AS times
                                 FROM ledger.delivery d JOIN ledger.customer c USING (customer_id)
                                 JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
                                 WHERE d.original_transaction_id = b.original_transaction_id AND d.skip_reason IS NULL
                                 GROUP BY head.name) g
                           WHERE g.times <> 0) AS given
                FROM (SELECT original_transaction_id, customer FROM perennial.purchase_now
                      UNION ALL SELECT original_transaction_id, customer FROM perennial.subscription_now) b
                """))
        var endings = Dictionary(uniqueKeysWithValues: stories.map { ($0.id, OwnerEnding()) })
        for row in rows {
            let given = try row.textIfPresent("given")?.split(separator: " ").map(String.init)
            #expect(given == nil || given?.count == 2 && given?.last == "1", "\(given ?? [])")
            endings[try row.text("original_transaction_id")] = OwnerEnding(
                owner: try row.textIfPresent("customer").flatMap { places[$0] },
                credited: given?.first.flatMap { places[$0] })
        }
        return endings
    }
}
