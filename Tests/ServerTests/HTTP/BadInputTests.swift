import AppStore
import Foundation
import Hummingbird
import HummingbirdTesting
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

private let servedLedger = OncePerSuite(ServedLedger.with)

@Suite("Odd input is refused or kept as it is, and a key sees only its own app", servedLedger) struct BadInputTests {
    /// Texts that mean something to SQL, shells, paths, terminals or other alphabets.
    static let oddTexts = [
        "'; DROP TABLE ledger.app; --", "\" OR \"\"=\"", "kim' OR '1'='1", "$1", "%", "_", "\\", "\\x00",
        "../../etc/passwd", "${jndi:ldap://x}", "<script>alert(1)</script>", "\u{202E}mik", "e\u{301}", "\u{E9}",
        "👩‍👩‍👧", "ﷺ", "İ", "\u{FEFF}kim", "\u{1B}[2J", "\r\nSet-Cookie: a=b", "null", "NaN", "\u{FFFD}",
        String(repeating: "é", count: 255), "🇩🇪\u{10FFFF}",
    ]

    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
    }

    private func json(_ text: String) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return String(decoding: try encoder.encode(text), as: UTF8.self)
    }

    /// Every odd text is just a text: it comes back as it is, and stays apart from every other.
    @Test("Odd texts are texts")
    func oddTextsAreTexts() async throws {
        try await ServedLedger.with { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for (number, text) in Self.oddTexts.enumerated() {
                    let body = #"{"customer":\#(try json(text)),"receipt":"\#(Sample.receipt(number))"}"#
                    let sent = try await client.send(.post, Serving.receipts, secret: served.secret, body: body)
                    #expect(sent.status == .accepted, "\(text.debugDescription): \(String(buffer: sent.body))")
                    #expect(sent.headers[.location]?.contains("\n") == false)
                    let path = "/v1/apps/com.example.app/customers/" + Self.encoded(text)
                    let reported = try await client.send(.get, path, secret: served.secret)
                    // Foundation's reader drops a byte order mark from a text, so the name is compared as it was written.
                    #expect(String(buffer: reported.body).contains(#""customer":\#(try json(text))"#))
                    let record = try AnswerBody(reported)
                    #expect(record.object("unverified_receipts")?["count"] as? Int == 1, "\(text.debugDescription)")
                    let rights = try await client.send(.get, path + "/entitlements", secret: served.secret)
                    #expect(rights.status == .ok)
                }
                #expect(try await served.ledger.customers.receipts().count == Self.oddTexts.count)
                #expect(try await served.ledger.apps.all().count == 2)
            }
        }
    }

    /// In places where only some texts are meant, every other is refused with its problem, and never fails here.
    @Test("Where only some texts are meant, every other is refused with its problem")
    func oddTextsElsewhere() async throws {
        try await servedLedger.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for text in Self.oddTexts + [String(repeating: "a", count: 10_000)] {
                    let odd = Self.encoded(text)
                    let paths = [
                        "/v1/apps/\(odd)/customers/kim", "/v1/apps/\(odd)/customers/kim/entitlements",
                        "/v1/apps/com.example.app/receipts/\(odd)", Serving.entitlements + "?at=\(odd)",
                        Serving.entitlements + "?known_at=\(odd)", "/v1/events?after=\(odd)", "/v1/events?feed=\(odd)",
                        "/v1/events?limit=\(odd)", "/v1/events?wait=\(odd)", "/v1/\(odd)",
                    ]
                    for path in paths {
                        let answer = try await client.send(.get, path, secret: served.secret)
                        #expect([400, 404, 409].contains(answer.status.code), "\(path): \(answer.status)")
                        #expect(answer.headers[.contentType] == "application/problem+json")
                    }
                    for field in ["storefront", "price", "currency", "receipt"] {
                        let receipt = field == "receipt" ? "" : #","receipt":"\#(Sample.receipt())""#
                        let body = #"{"customer":"kim","\#(field)":\#(try json(text))\#(receipt)}"#
                        let answer = try await client.send(.post, Serving.receipts, secret: served.secret, body: body)
                        // Some are words of three letters, or Base64 of something: only Apple knows more.
                        let fits = field != "price" || text == "null"
                        #expect(
                            [400, 422].contains(answer.status.code) || fits && answer.status == .accepted,
                            "\(field) \(text)")
                    }
                }
            }
        }
    }

    /// Manual grants take such texts as names and reasons; a batch answers in the order of its customers.
    @Test("Odd texts in entitlements and questions are texts like others")
    func oddTextsInRightsAndQuestions() async throws {
        try await servedLedger.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                let grants = "/v1/apps/com.example.app/customers/kim/grants"
                for text in Self.oddTexts {
                    let (word, odd) = (try json(text), Self.encoded(text))
                    let body = #"{"entitlement":\#(word),"actor":\#(word),"reason":\#(word),"force":true}"#
                    let given = try await client.send(.post, grants, secret: served.secret, body: body)
                    #expect(given.status == .created, "\(word): \(String(buffer: given.body))")
                    #expect(String(buffer: given.body).contains(#""reason":\#(word)"#))
                    let query = "?entitlement=\(odd)&actor=\(odd)&reason=\(odd)"
                    let revoked = try await client.send(.delete, grants + query, secret: served.secret)
                    #expect(revoked.status == .ok, "\(word): \(String(buffer: revoked.body))")
                    #expect(String(buffer: revoked.body).contains(#""ended_by":\#(word)"#))
                }
                let customers = try Self.oddTexts.map(json).joined(separator: ",")
                let reported = try await client.send(
                    .post, "/v1/apps/com.example.app/entitlements:batch", secret: served.secret,
                    body: #"{"customers":[\#(customers)]}"#)
                #expect(reported.status == .ok)
                var rest = Substring(String(buffer: reported.body))
                for text in Self.oddTexts {
                    let found = try #require(rest.firstRange(of: #""customer":\#(try json(text))"#), "\(text)")
                    rest = rest[found.upperBound...]
                }
                #expect(try await served.ledger.apps.all().count == 2)
            }
        }
    }

    /// A misspelt name must not be taken for one that was left out.
    @Test("Names that nothing reads are refused")
    func namesThatNothingReads() async throws {
        try await ServedLedger.with { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                let app = "/v1/apps/com.example.app"
                let grants = "\(app)/customers/kim/grants"
                let grant = #""entitlement":"pro","actor":"kim","reason":"x","force":true"#
                let cases: [(HTTPRequest.Method, String, String?, String)] = [
                    (
                        .get, Serving.entitlements + "?att=2026-01-01T00:00:00Z", nil,
                        "query's att; the nearest name is at."
                    ),
                    (
                        .get, Serving.entitlements + "?at=2026-01-01T00:00:00Z&knownat=x", nil,
                        "nearest name is known_at."
                    ),
                    (.get, "\(app)/customers/kim?colour=red", nil, "query's colour; there is none to give."),
                    (.get, "\(app)/receipts/1?at=1", nil, "query's at; "),
                    (.get, "/v1/events?after=0&wiat=1", nil, "query's wiat; the nearest name is wait."),
                    (.get, "/v1/events?position=0", nil, "known are after, feed, limit, wait."),
                    (.post, grants, "{\(grant),\"untill\":null}", "body's field untill; the nearest name is until."),
                    (.delete, grants + "?entitlement=pro&actor=kim&reason=x&until=1", nil, "query's until; known are"),
                    (
                        .post, "\(app)/entitlements:batch", #"{"customers":["kim"],"knownat":null}"#,
                        "nearest name is known_at."
                    ),
                    (
                        .post, Serving.receipts, #"{"customer":"kim","receipts":"x","receipt":"y"}"#,
                        "nearest name is receipt."
                    ),
                    (.post, Serving.receipts + "?wait=1", Sample.upload(Sample.receipt()), "query's wait; "),
                ]
                for (method, path, body, name) in cases {
                    let answer = try await client.send(method, path, secret: served.secret, body: body)
                    try expectProblem(answer, "invalid", status: 400)
                    #expect(try AnswerBody(answer).text("detail")?.contains(name) == true, "\(path): \(answer.body)")
                }
                #expect(try await served.ledger.customers.receipts().isEmpty)
                // What takes no names does not mind them: a probe may carry one.
                #expect(try await client.send(.get, "/healthz?probe=1").status == .ok)
                #expect(try await client.send(.get, Serving.entitlements + "?", secret: served.secret).status == .ok)
            }
        }
    }

    /// A text in a header or in a secret address gives no access.
    @Test("Odd texts in headers and addresses count for nothing")
    func oddTextsInHeadersAndAddresses() async throws {
        try await servedLedger.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for text in Self.oddTexts {
                    let address = "/v1/notifications/\(Self.encoded(text))"
                    let notified = try await client.send(.post, address, body: #"{"signedPayload":"x"}"#)
                    try expectProblem(notified, "not-found", status: 404)
                    let headers: HTTPFields = [.init("X-Request-Id")!: text, .ifNoneMatch: text, .contentType: text]
                    let rights = try await client.send(
                        .get, Serving.entitlements, secret: served.secret, headers: headers)
                    #expect(rights.status == .ok, "\(text.debugDescription): \(rights.status)")
                    let sent = try await client.send(
                        .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt()),
                        headers: [.contentType: text])
                    try expectProblem(sent, "unsupported-media", status: 415)
                    try expectProblem(
                        try await client.send(.get, Serving.entitlements, headers: [.authorization: "Bearer \(text)"]),
                        "unauthenticated", status: 401)
                }
            }
        }
    }

    /// The first and the last instant that may be asked for are answered; what lies outside never reaches the database.
    @Test("Instants out of range, and those without an offset, are refused")
    func instantsOutOfRange() async throws {
        let instants = [
            ("1970-01-01T00:00:00Z", 200), ("9999-12-31T23:59:59.999Z", 200), ("1969-12-31T23:59:59.999Z", 400),
            ("10000-01-01T00:00:00Z", 400), ("0000-01-01T00:00:00Z", 400), ("-0001-01-01T00:00:00Z", 400),
            ("294277-01-01T00:00:00Z", 400), ("2026-02-30T00:00:00Z", 400), ("2026-01-01T25:00:00Z", 400),
            ("infinity", 400), ("-infinity", 400), ("now", 400), ("99999999999999999999", 400),
            ("9999-12-31T23:59:59", 400), ("2026-01-01T00:00:00", 400), ("2026-01-01", 400),
            ("2026-01-01T00:00:00+02:00", 200), ("2026-01-01T00:00:00-08:00", 200),
        ]
        try await servedLedger.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for (instant, status) in instants {
                    for query in ["at", "known_at"] {
                        let answer = try await client.send(
                            .get, Serving.entitlements + "?\(query)=\(Self.encoded(instant))", secret: served.secret)
                        #expect(answer.status.code == status, "\(query)=\(instant)")
                        if status == 400 { try expectProblem(answer, "invalid", status: 400) }
                        let isLocal = Instant(iso8601: instant) != nil && !Instant.namesOffset(instant)
                        let detail = status == 400 ? try AnswerBody(answer).text("detail") : nil
                        #expect(detail?.contains("does not say which offset") ?? false == isLocal, "\(instant)")
                    }
                    let grant = #"{"entitlement":"pro","actor":"kim","reason":"x","force":true,"until":"\#(instant)"}"#
                    let given = try await client.send(
                        .post, "/v1/apps/com.example.app/customers/kim/grants", secret: served.secret, body: grant)
                    // What is over already is not given either.
                    #expect(
                        given.status.code == (instant.hasPrefix("9999-") && instant.hasSuffix("Z") ? 201 : 400),
                        "until \(instant)")
                }
            }
        }
    }

    @Test(
        "Bodies that are none are refused",
        arguments: [
            "", "{", "[]", "null", "0", "\"\"", "{}", "{\"customer\":1}", "\u{FEFF}{}", "{\"customer\":\"\\ud800\"}",
            String(repeating: "[", count: 100_000), String(repeating: "{\"a\":", count: 10_000),
            "{\"customer\":\"a\",\"customer\":\"b\"}",
            "{\"customer\":\"\",\"receipt\":\"MIAG\"}", "{\"customer\":\"a\\u0000\",\"receipt\":\"MIAG\"}",
        ])
    func bodiesThatAreNone(_ body: String) async throws {
        try await Serving.withoutDatabase { client in
            for path in [Serving.receipts, "/v1/apps/com.example.app/entitlements:batch"] {
                let answer = try await client.send(.post, path, secret: TestKey.write.secret, body: body)
                try expectProblem(answer, "invalid", status: 400)
            }
        }
    }

    @Test(
        "A number that does not fit is refused by its field's name and range",
        arguments: [
            (
                "orders", #"{"customer":"a","product_id":"b","quantity":N}"#,
                "The body's quantity is a whole number from 1 to 10."
            ),
            (
                "orders", #"{"customer":"a","product_id":"b","price":N}"#,
                "The body's price is a price like 4.99, from 0 to 9"
            ),
            (
                "receipts", #"{"customer":"a","receipt":"MIAG","price":N}"#,
                "The body's price is a price like 4.99, from 0"
            ),
            ("deliveries:ack", #"{"ids":[1,N]}"#, "The body's ids.Index 1 is a whole number from 1 to 922337"),
        ])
    func numbersOutOfRange(_ path: String, _ body: String, _ sentence: String) async throws {
        try await Serving.withoutDatabase { client in
            for number in ["99999999999999999999", "1e400", "-1e400", "1.0001"] {
                let answer = try await client.send(
                    .post, "/v1/apps/com.example.app/\(path)", secret: TestKey.write.secret,
                    body: body.replacing("N", with: number))
                try expectProblem(answer, "invalid", status: 400)
                #expect(String(buffer: answer.body).contains(sentence), "\(number): \(String(buffer: answer.body))")
            }
        }
    }

    @Test(
        "Ids that are none are refused",
        arguments: ["%", "%zz", "%ff", "%00", "a%00b", "%C3%28", String(repeating: "k", count: 256), "%20%20%00"])
    func idsThatAreNone(_ id: String) async throws {
        try await Serving.withoutDatabase { client in
            for path in [
                "/v1/apps/com.example.app/customers/\(id)", "/v1/apps/com.example.app/customers/\(id)/entitlements",
            ] {
                let answer = try await client.send(.get, path, secret: TestKey.read.secret)
                try expectProblem(answer, "invalid", status: 400)
            }
        }
    }

    /// A key of one app learns nothing of another's customers, receipts and events, whatever it asks.
    @Test("Nothing leaks")
    func nothingLeaks() async throws {
        try await ServedLedger.with { served in
            let store = AppStoreClient.answering(Sample.verified())
            try await Serving.with(Tracker.quiet(served.ledger, appStore: store)) { client in
                let sent = try await client.send(
                    .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt()))
                #expect(sent.status == .ok)
                let receipt = try #require(try AnswerBody(sent).text("receipt_id"))
                let other = try await served.key(.admin, for: "com.example.other")
                let (own, foreign) = ("/v1/apps/com.example.other", "/v1/apps/com.example.app")
                for path in ["/customers/kim", "/customers/kim/entitlements", "/receipts/\(receipt)"] {
                    let refused = try await client.send(.get, foreign + path, secret: other)
                    try expectProblem(refused, "forbidden", status: 403)
                    let answer = try await client.send(.get, own + path, secret: other)
                    let text = String(buffer: answer.body)
                    #expect(!text.contains("com.example.app") && !text.contains("monthly"), "\(path): \(text)")
                }
                let question = #"{"customers":["kim"]}"#
                let batch = try await client.send(.post, own + "/entitlements:batch", secret: other, body: question)
                #expect(!String(buffer: batch.body).contains("monthly"))
                try expectProblem(
                    try await client.send(.post, foreign + "/entitlements:batch", secret: other, body: question),
                    "forbidden", status: 403)
                let right = #"{"entitlement":"pro","actor":"kim","reason":"x","force":true}"#
                let ending = "/customers/kim/grants?entitlement=pro&actor=kim&reason=x"
                let grants = foreign + "/customers/kim/grants"
                let given = try await client.send(.post, grants, secret: served.secret, body: right)
                #expect(given.status == .created)
                let forbidden = try await client.send(.post, grants, secret: other, body: right)
                try expectProblem(forbidden, "forbidden", status: 403)
                try expectProblem(
                    try await client.send(.delete, foreign + ending, secret: other), "forbidden", status: 403)
                try expectProblem(
                    try await client.send(.delete, own + ending, secret: other), "not-found", status: 404)
                let events = try AnswerBody(await client.send(.get, "/v1/events", secret: other))
                #expect(events.list("events")?.isEmpty == true)
                // The same receipt sent to the other app is another receipt: it has no owner there yet.
                let again = try await client.send(
                    .post, own + "/receipts", secret: other, body: Sample.upload(Sample.receipt()))
                #expect(again.status == .unprocessableContent)
                #expect(try AnswerBody(again).text("receipt_id") != receipt)
            }
        }
    }
}
