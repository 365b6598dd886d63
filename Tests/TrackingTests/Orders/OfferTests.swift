import Crypto
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Products on offer and signed offers follow from what is stored")
struct OfferTests {
    private static let signer = P256.Signing.PrivateKey()

    /// Sells a subscription with offers, an alternate for it in another group, and coins.
    private func sell(in test: TestLedger) async throws {
        func product(_ id: ProductID, group: String, place: Int32) -> CatalogProduct {
            var product = CatalogProduct(id: id, kind: .autoRenewable, group: group, entitlements: ["pro"])
            product.slot = CatalogProduct.Slot(name: "main", place: place)
            return product
        }
        var monthly = product("monthly", group: "group", place: 1)
        monthly.offers = [
            PromotionalOffer(id: "back", audience: [.lapsed], until: test.at(9), once: true),
            PromotionalOffer(id: "stay", audience: [.current]),
        ]
        var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
        coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
        try await test.sell([
            monthly, product("alternate", group: "second", place: 2), coins,
            CatalogProduct(id: "season", kind: .nonRenewing, period: "P1M", entitlements: []),
        ])
    }

    private func storeKey(in test: TestLedger, issuer: String? = "issuer") async throws {
        let key = try ConnectKey(pem: Self.signer.pemRepresentation, id: "KEY", issuer: issuer)
        try await test.ledger.apps.storeOfferKey(key, of: test.app.bundleID)
    }

    private func products(
        for customer: String?, on device: String? = nil, in test: TestLedger
    ) async throws -> [ProductID] {
        try await test.ledger.offers.products(for: customer, on: device, of: test.app.bundleID).map(\.product.id)
    }

    private func offers(for customer: String, in test: TestLedger) async throws -> [OfferRefusal?] {
        let products = try await test.ledger.offers.products(for: customer, on: nil, of: test.app.bundleID)
        return products.first { $0.product.id == "monthly" }?.offers.map(\.refusal) ?? []
    }

    private func sign(
        _ offer: String = "stay", of product: ProductID = "monthly", for customer: String = "ann", order: String? = nil,
        as form: OfferForm = .classic, in test: TestLedger
    ) async throws -> OfferAnswer {
        try await test.ledger.offers.sign(
            offer, of: product, for: customer, order: order, as: form, app: test.app.bundleID)
    }

    /// The order of a customer, from a device.
    private func order(
        _ product: ProductID = "monthly", by customer: String = "ann", device: String? = nil, in test: TestLedger
    ) async throws -> PlacedOrder {
        var request = OrderRequest(customer: customer, productID: product)
        request.device = device
        return try await test.ledger.orders.place(request, of: test.app.bundleID, requestKey: UUID().uuidString)
    }

    @Test("A receipt that shows another customer's subscription leads to the alternate, also when it ended")
    func byReceipt() async throws {
        try await withLedger(policy: .keep) { test in
            try await sell(in: test)
            let (plain, alternate): ([ProductID], [ProductID]) = (
                ["coins", "monthly", "season"], ["alternate", "coins", "season"]
            )
            #expect(try await products(for: "bob", in: test) == plain)
            let receipt = try await test.upload("a", by: "ann")
            try await test.check(receipt, Answer(from: test.at(-40), asOf: test.at(-39)))
            try await test.upload("a", by: "bob")
            try await test.check(receipt, Answer(from: test.at(-40), asOf: test.at(-1)).but { $0.willRenew = false })
            #expect(try await test.owner() == "ann")
            #expect(try await products(for: "ann", in: test) == plain)
            #expect(try await products(for: "bob", in: test) == alternate)
            #expect(try await products(for: "eve", in: test) == plain)
            #expect(try await products(for: nil, in: test) == plain)
            // Who is the same person shares nothing.
            _ = try await test.ledger.customers.merge(
                "bob", into: "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "logged in"))
            #expect(try await products(for: "bob", in: test) == plain)
        }
    }

    @Test("An order from the same device leads to the alternate where no receipt does")
    func byDevice() async throws {
        try await withLedger { test in
            try await sell(in: test)
            _ = try await order(by: "ann", device: "tablet", in: test)
            #expect(try await products(for: "bob", on: "tablet", in: test).contains("monthly"))
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            #expect(try await products(for: "bob", on: "tablet", in: test) == ["alternate", "coins", "season"])
            #expect(try await products(for: nil, on: "tablet", in: test) == ["alternate", "coins", "season"])
            for (customer, device) in [("ann", "tablet"), ("bob", "phone"), ("bob", nil)] {
                #expect(try await products(for: customer, on: device, in: test) == ["coins", "monthly", "season"])
            }
        }
    }

    @Test(
        "Offers are for the newcomer, the current or the lapsed subscriber, and are redeemed once")
    func eligibility() async throws {
        try await withLedger { test in
            try await sell(in: test)
            #expect(try await offers(for: "ann", in: test) == [.neverSubscribed, .neverSubscribed])
            let running = Answer(from: test.at(-9), asOf: test.at(-3))
            let receipt = try await test.upload("a")
            try await test.check(receipt, running)
            #expect(try await offers(for: "ann", in: test) == [.notLapsed, nil])
            let retry = running.but { ($0.from, $0.asOf, $0.inRetry) = (test.at(-40), test.at(-2), true) }
            try await test.check(
                try await test.upload("b", by: "bob"), retry.but { ($0.subscription, $0.line) = ("2", "b") })
            #expect(try await offers(for: "bob", in: test) == [.notLapsed, nil])
            let over = Answer(from: test.at(-70), asOf: test.at(-2)).but {
                ($0.subscription, $0.line, $0.willRenew, $0.intent) = ("3", "c", false, "1")
            }
            let third = try await test.upload("c", by: "carl")
            try await test.check(third, over)
            #expect(try await offers(for: "carl", in: test) == [nil, .notCurrent])
            var back = over.but { ($0.periods, $0.from, $0.asOf) = (1, test.at(-70), test.at(-1)) }.evidence
            back.transactions[0].promotionalOfferID = "back"
            try await test.check(third, .verified(back))
            #expect(try await offers(for: "carl", in: test) == [.redeemed, .notCurrent])
            var next = running.but { $0.asOf = test.at(-1) }.evidence
            next.renewals[0].renewal.promotionalOfferID = "back"
            try await test.check(receipt, .verified(next))
            #expect(try await offers(for: "ann", in: test) == [.redeemed, nil])
        }
    }

    @Test("A trial or a running subscription makes its group ineligible, a family share does not, nor is it replaced")
    func introductory() async throws {
        try await withLedger { test in
            let yearly = CatalogProduct(id: "yearly", kind: .autoRenewable, group: "group", entitlements: [])
            try await test.sell([yearly])
            func shown() async throws -> ProductOnOffer? {
                try await test.ledger.offers.products(for: "ann", on: nil, of: test.app.bundleID).first
            }
            #expect(try await shown()?.isIntroductoryEligible == true)
            let shared = Answer(from: test.at(-9), asOf: test.at(-1)).but {
                ($0.trial, $0.shared, $0.subscription) = (true, true, "900")
            }
            try await test.check(try await test.upload("s"), shared)
            #expect(try await shown()?.isIntroductoryEligible == true, "a family share alone")
            #expect(try await shown()?.replaces == nil)
            let paid = Answer(from: test.at(-9), asOf: test.at(-1)).but { $0.line = "p" }
            let receipt = try await test.upload("a")
            try await test.check(receipt, paid)
            #expect(try await shown()?.isIntroductoryEligible == false, "it runs, though it never had an offer")
            #expect(try await shown()?.replaces == "monthly")
            try await test.check(receipt, paid.but { ($0.refunded, $0.asOf) = ((0, test.at(-0.5)), test.at(-0.4)) })
            #expect(try await shown()?.isIntroductoryEligible == true, "it ended, and never had an offer")
            try await test.check(
                try await test.upload("b"),
                Answer(from: test.at(-60), asOf: test.at(-1)).but { ($0.trial, $0.subscription) = (true, "800") })
            #expect(try await shown()?.isIntroductoryEligible == false)
            #expect(try await shown()?.replaces == nil)
        }
    }

    /// What is known of the only subscription, and whether it leaves an introductory offer.
    private static let standings: [(name: String, isEligible: Bool, said: @Sendable (TestLedger) -> Evidence)] = [
        ("runs", false, { Answer(from: $0.at(-9), asOf: $0.at(-1)).evidence }),
        ("in grace", false, { failed($0) { answer, test in answer.graceUntil = test.at(5) } }),
        ("in billing retry", false, { failed($0) }),
        ("awaits its renewal", false, { Answer(from: $0.at(-30.02), asOf: $0.at(-0.01)).evidence }),
        ("Apple could not be asked", false, { Answer(from: $0.at(-32), asOf: $0.at(-3)).evidence }),
        ("a seat of a group", false, { paid(by: .assigned, $0) }),
        ("a family share", true, { paid(by: .familyShared, $0) }),
        ("a family share in grace", true, { failed($0) { ($0.graceUntil, $0.shared) = ($1.at(5), true) } }),
        ("ended", true, { ended($0) { _ in } }),
        ("ended, of an introductory price", false, { ended($0) { $0.isIntro = true } }),
        ("ended, of a trial", false, { ended($0) { $0.isTrial = true } }),
    ]

    private static func failed(_ test: TestLedger, _ change: (inout Answer, TestLedger) -> Void = { _, _ in })
        -> Evidence
    {
        Answer(from: test.at(-31), asOf: test.at(-0.5)).but { answer in
            (answer.intent, answer.inRetry) = ("2", true)
            change(&answer, test)
        }.evidence
    }

    private static func paid(by ownership: Ownership, _ test: TestLedger) -> Evidence {
        var evidence = Answer(from: test.at(-9), asOf: test.at(-1)).evidence
        evidence.transactions[0].ownership = ownership
        return evidence
    }

    private static func ended(_ test: TestLedger, _ change: (inout TransactionRow) -> Void) -> Evidence {
        var evidence = Answer(from: test.at(-70), asOf: test.at(-1)).but { ($0.willRenew, $0.intent) = (false, "1") }
            .evidence
        change(&evidence.transactions[0])
        return evidence
    }

    @Test(
        "An introductory offer is for who neither subscribes in the group, in any state, nor had one",
        arguments: standings.indices)
    func introductoryByState(_ index: Int) async throws {
        let standing = Self.standings[index]
        try await withLedger { test in
            try await test.sell(
                ["monthly", "yearly"].map {
                    CatalogProduct(id: $0, kind: .autoRenewable, group: "group", entitlements: [])
                })
            try await test.check(try await test.upload("a"), .verified(standing.said(test)))
            let shown = try await test.ledger.offers.products(for: "ann", on: nil, of: test.app.bundleID)
            #expect(
                shown.map(\.isIntroductoryEligible) == [standing.isEligible, standing.isEligible], "\(standing.name)")
        }
    }

    @Test("What runs and what is kept is owned; what ended, was taken back, used up or is another's is not")
    func owned() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            func owned(_ customer: String? = "ann") async throws -> [ProductID] {
                let products = try await test.ledger.offers.products(for: customer, on: nil, of: test.app.bundleID)
                return products.filter(\.isOwned).map(\.product.id)
            }
            #expect(try await owned().isEmpty)
            try await test.buys("coin", "coins")
            try await test.buys("old", "season", days: -40)
            #expect(try await owned().isEmpty, "coins are used up, and the season of a month is over")
            try await test.buys("theme", "themes")
            try await test.buys("new", "season", days: -20)
            let receipt = try await test.upload("a")
            let running = Answer(from: test.at(-9), asOf: test.at(-1))
            try await test.check(receipt, running)
            #expect(try await owned() == ["monthly", "season", "themes"])
            #expect(try await owned("bob").isEmpty)
            #expect(try await owned(nil).isEmpty)
            try await test.buys("theme", "themes", asOf: -0.5, refunded: -0.6)
            try await test.check(receipt, running.but { ($0.refunded, $0.asOf) = ((0, test.at(-0.5)), test.at(-0.4)) })
            #expect(try await owned() == ["season"], "Apple took the others back")
        }
    }

    @Test("The classic form is a DER signature over seven values, which the public key verifies")
    func classic() async throws {
        try await withLedger { test in
            try await sell(in: test)
            try await storeKey(in: test)
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            let placed = try await order(in: test)
            var nonces: Set<String> = []
            for (id, token) in [(nil, nil), (placed.id, placed.appAccountToken)] as [(String?, String?)] {
                guard case .signed(let made) = try await sign(order: id, in: test) else {
                    Issue.record("The offer was refused.")
                    return
                }
                #expect(made.keyID == "KEY" && made.appAccountToken == token && made.form == .classic)
                #expect(made.nonce.contains(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/))
                #expect(abs(made.signedAt.milliseconds - Int64(Date.now.timeIntervalSince1970 * 1000)) < 3_600_000)
                nonces.insert(made.nonce)
                let values = [
                    "com.example.app", "KEY", "monthly", "stay", token ?? "", made.nonce,
                    "\(made.signedAt.milliseconds)",
                ]
                let message = Data(values.map { Array($0.utf8) }.joined(separator: [0xE2, 0x81, 0xA3]))
                let signature = try P256.Signing.ECDSASignature(
                    derRepresentation: try #require(Data(base64Encoded: made.text)))
                #expect(Self.signer.publicKey.isValidSignature(signature, for: message))
                #expect(!Self.signer.publicKey.isValidSignature(signature, for: message + [0]))
            }
            #expect(nonces.count == 2)
        }
    }

    @Test("The form jws is a compact ES256 text with Apple's claims, which the public key verifies")
    func jws() async throws {
        try await withLedger { test in
            try await sell(in: test)
            try await storeKey(in: test)
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            guard case .signed(let made) = try await sign(as: .jws, in: test) else {
                Issue.record("The offer was refused.")
                return
            }
            let parts = made.text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            try #require(parts.count == 3 && !made.text.contains("="))
            func decoded(_ part: String) throws -> Data {
                let base64 = part.replacing("-", with: "+").replacing("_", with: "/")
                let padding = String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
                return try #require(Data(base64Encoded: base64 + padding))
            }
            #expect(
                String(decoding: try decoded(parts[0]), as: UTF8.self) == #"{"alg":"ES256","kid":"KEY","typ":"JWT"}"#)
            #expect(
                String(decoding: try decoded(parts[1]), as: UTF8.self) == """
                    {"aud":"promotional-offer","bid":"com.example.app","iat":\(made.signedAt.milliseconds / 1_000),\
                    "iss":"issuer","nonce":"\(made.nonce)","offerIdentifier":"stay","productId":"monthly",\
                    "transactionId":"w1000-0"}
                    """)
            let raw = try decoded(parts[2])
            #expect(raw.count == 64)
            let signature = try P256.Signing.ECDSASignature(rawRepresentation: raw)
            #expect(Self.signer.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)))
            // The account token is no claim: the app passes it to StoreKit with the purchase.
            let placed = try await order(in: test)
            guard case .signed(let paying) = try await sign(order: placed.id, as: .jws, in: test) else { return }
            #expect(paying.appAccountToken == placed.appAccountToken)
        }
    }

    @Test("What is not there, or does not fit, is an error that says so")
    func refusals() async throws {
        try await withLedger { test in
            try await sell(in: test)
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            func refusal(_ attempt: () async throws -> OfferAnswer) async -> (LedgerError.Kind?, String) {
                let error = await #expect(throws: LedgerError.self) { _ = try await attempt() }
                return (error?.kind, error?.message ?? "")
            }
            var said = await refusal { try await sign(in: test) }
            #expect(said.0 == .notFound && said.1.contains("`perennial app offer-key com.example.app --key-file"))
            #expect(try await sign("back", in: test) == .refused(.notLapsed))
            try await storeKey(in: test, issuer: nil)
            said = await refusal { try await sign(as: .jws, in: test) }
            #expect(said.0 == .notFound && said.1.contains("--issuer-id"))
            for attempt in [
                { try await sign("gone", in: test) }, { try await sign(of: "gone", in: test) },
                { try await sign("stay", of: "alternate", in: test) }, { try await sign(order: "x", in: test) },
                { try await sign(order: UUID().uuidString, in: test) },
            ] {
                #expect(await refusal(attempt).0 == .notFound)
            }
            let (bobs, coins) = (try await order(by: "bob", in: test), try await order("coins", in: test))
            #expect(await refusal { try await sign(order: bobs.id, in: test) }.0 == .notFound)
            #expect(await refusal { try await sign(order: coins.id, in: test) }.0 == .exists)
            try await test.buys("p")
            let late = try await order(in: test)
            try await test.check(
                try await test.upload("late"),
                Answer(from: test.at(-8), asOf: test.at(-0.5)).but {
                    ($0.subscription, $0.line, $0.token) = ("late", "l", late.appAccountToken)
                })
            said = await refusal { try await sign(order: late.id, in: test) }
            #expect(said.0 == .exists && said.1.contains("paid"))
            for customer in ["", String(repeating: "x", count: 256), "a\0"] {
                #expect(await refusal { try await sign(for: customer, in: test) }.0 == .invalid)
                #expect(await refusal { try await sign(customer, in: test) }.0 == .invalid)
                #expect(await refusal { try await sign(of: ProductID(customer), in: test) }.0 == .invalid)
            }
        }
    }

    @Test("Nothing is written, for known and unknown customers")
    func nothingWritten() async throws {
        try await withLedger { test in
            try await sell(in: test)
            try await storeKey(in: test)
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            let placed = try await order(device: "tablet", in: test)
            let before = try await test.everything()
            for customer in ["ann", "bob", "stranger"] {
                _ = try await products(for: customer, on: "tablet", in: test)
                for form in OfferForm.allCases {
                    _ = try await sign(for: customer, as: form, in: test)
                }
            }
            _ = try await sign(order: placed.id, in: test)
            #expect(try await test.everything() == before)
            #expect(before["customer"]?.count == 1)
        }
    }
}
