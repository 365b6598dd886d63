import Subscriptions
import Testing
import Tracking

@testable import Server

@Suite("The description of the API is complete") struct DescriptionTests {
    @Test("Each operation has an id of its own, one known tag, and a summary") func names() throws {
        let description = try Description()
        let operations = description.operations
        let ids = operations.compactMap { $0.members["operationId"] as? String }
        #expect(ids.count == operations.count && Set(ids).count == ids.count && ids.count > 25)
        for id in ids { #expect(id.wholeMatch(of: /[a-z]+([A-Z][a-z]+)+/) != nil, "\(id)") }
        #expect(["createReceipt", "getEntitlements", "listCustomers"].allSatisfy(ids.contains))
        for operation in operations {
            let tags = operation.members["tags"] as? [String] ?? []
            #expect(tags.count == 1 && tags.allSatisfy(description.tags.contains), "\(operation.place)")
            #expect((operation.members["summary"] as? String)?.hasSuffix(".") == true, "\(operation.place)")
        }
        let used = Set(operations.compactMap { ($0.members["tags"] as? [String])?.first })
        #expect(used == Set(description.tags) && !description.servers.isEmpty)
    }

    @Test("Each JSON body and each JSON answer has an example that fits its schema") func examples() throws {
        let description = try Description()
        for operation in description.operations {
            let answers = operation.members["responses"] as? [String: Any] ?? [:]
            let bodies: [(String, Any?)] =
                [("body", operation.members["requestBody"])] + answers.map { ($0.key, $0.value) }
            for (place, body) in bodies {
                guard let json = description.json(body) else { continue }
                let example = try #require(json["example"], "\(operation.place) \(place) has no example")
                let faults = description.faults(of: example, by: json["schema"], at: "\(operation.place) \(place)")
                #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
            }
        }
    }

    private func all<Word: CaseIterable & RawRepresentable<String>>(_: Word.Type, but: Word...) -> Set<String> {
        Set(Word.allCases.map(\.rawValue)).subtracting(but.map(\.rawValue))
    }

    @Test("Where a member has one of a few words, they are those of the program") func words() throws {
        let description = try Description()
        let environments = all(StoreEnvironment.self)
        for (name, member) in [
            ("Order", "environment"), ("Delivery", "environment"), ("StoredReceipt", "environment"),
            ("Subscription", "environment"), ("OwnedSubscription", "environment"), ("OwnedPurchase", "environment"),
            ("Span", "environment"), ("Event", "environment"), ("Webhook", "environment"),
            ("Entitlement", "environment"),
        ] {
            #expect(description.words(name, member) == environments, "\(name)")
        }
        #expect(description.words("State") == all(State.self))
        #expect(description.words("OrderState") == all(OrderState.self))
        #expect(description.words("Submission", "purpose") == all(UploadPurpose.self))
        #expect(description.words("UploadResult", "result") == all(UploadResult.Word.self))
        #expect(description.words("UploadResult", "advice") == all(UploadResult.Advice.self))
        #expect(description.words("OrderUploadResult", "result") == all(UploadResult.Word.self))
        #expect(description.words("OrderUploadResult", "advice") == all(UploadResult.Advice.self))
        #expect(description.words("Delivery", "kind") == all(ProductKind.self))
        #expect(description.words("Delivery", "state") == all(Delivery.State.self))
        #expect(description.words("ProductOnOffer", "kind") == all(ProductKind.self))
        #expect(description.words("OfferRefusal") == all(OfferRefusal.self))
        #expect(description.words("StoredReceipt", "form") == all(SubmittedForm.self))
        #expect(description.words("StoredReceipt", "vouching") == all(Vouching.self))
        #expect(description.words("VerifiedReceipt", "vouching") == all(Vouching.self))
        #expect(description.words("Webhook", "state") == all(Webhook.State.self))
        // What a server without a standby does not say, and what becomes of a notification later.
        #expect(description.words("Readiness", "standby") == all(StandbyStanding.self, but: .none))
        #expect(description.words("Notified", "effect") == all(NotificationEffect.self, but: .unshown, .applied))
    }

    /// Texts of every form that the parts make, each with whether all its parts are good.
    private static let instants: [(text: String, isGood: Bool)] = {
        let dates = [
            ("1970-01-02", true), ("2026-11-20", true), ("2024-02-29", true), ("9999-12-30", true),
            ("1969-12-30", false),
            ("2026-13-01", false), ("2026-00-10", false), ("2026-11-32", false), ("26-11-20", false),
            ("2026-1-20", false), ("20261120", false), ("", false), (" 2026-11-20", false), ("12026-11-20", false),
        ]
        let separators = [("T", true), ("t", true), (" ", true), ("", false), ("_", false), ("T ", false)]
        let times = [
            ("12:00", true), ("00:00:00", true), ("23:59:59", true), ("12:00:00.1", true), ("12:00:00,123456789", true),
            ("24:00:00", false), ("23:59:60", false), ("12:60:00", false), ("12", false), ("12:0:00", false),
            ("12:00:00.", false), ("12:00.5", false), ("120000", false), ("", false), ("-1:00:00", false),
        ]
        let offsets = [
            ("Z", true), ("z", true), ("+00:00", true), ("-00:00", true), ("+0530", true), ("-08", true),
            ("+23:59", true),
            ("", false), ("+24:00", false), ("+05:60", false), ("+5", false), ("+05:3", false), ("+05:", false),
            ("ZZ", false), (" Z", false), ("UTC", false), ("Z ", false), ("\u{661}", false),
        ]
        return dates.flatMap { date in
            separators.flatMap { separator in
                times.flatMap { time in
                    offsets.map { offset in
                        (date.0 + separator.0 + time.0 + offset.0, date.1 && separator.1 && time.1 && offset.1)
                    }
                }
            }
        }
    }()

    @Test("The pattern of an instant fits what is accepted, and nothing else") func askedInstants() throws {
        let pattern = try Regex(try #require(Description().schema("AskedInstant")["pattern"] as? String))
        for (text, isGood) in Self.instants {
            let isAccepted = (try? Instant(asked: text, as: "It")) != nil
            let fits = text.wholeMatch(of: pattern) != nil
            if isAccepted != isGood || fits != isGood {
                Issue.record("\(text): accepted \(isAccepted), fits \(fits), good \(isGood)")
            }
        }
        // What only a calendar knows.
        for text in ["2026-02-29T00:00:00Z", "1970-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"] {
            #expect(throws: Problem.self) { try Instant(asked: text, as: "It") }
        }
    }

    @Test("An example that does not fit its schema is found") func wrongExamples() throws {
        let description = try Description()
        let order: [String: Any] = ["$ref": "#/components/schemas/PlacedOrder"]
        #expect(description.faults(of: ["state": "sold"], by: order, at: "order").count == 5)
        #expect(description.faults(of: "x", by: order, at: "order") == ["order: x is not of [\"object\"]"])
    }
}
