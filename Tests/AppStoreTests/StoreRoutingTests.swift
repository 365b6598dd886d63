import Subscriptions
import Testing

@testable import AppStore

@Suite("Which store is asked with which secret") struct ConversationTests {
    /// Statuses answered in order, and where each question went: `P` or `S`, with `'` for the previous secret.
    static let tables:
        [(askFirst: StoreEnvironment, sandbox: Bool, previous: String?, statuses: [Int?], asked: String)] = [
            (.production, true, nil, [0], "P"),
            (.production, true, nil, [21007, 0], "P S"),
            (.production, true, nil, [21007, 21008], "P S"),
            (.production, true, nil, [21007, 21007], "P S"),
            (.production, true, nil, [21008], "P"),
            (.production, false, nil, [21007], "P"),
            (.sandbox, true, nil, [0], "S"),
            (.sandbox, true, nil, [21008, 0], "S P"),
            (.sandbox, true, nil, [21008, 21007], "S P"),
            (.sandbox, true, nil, [21007], "S"),
            (.sandbox, false, nil, [21007], "P"),
            (.production, true, nil, [21004], "P"),
            (.production, true, "old", [21004, 0], "P P'"),
            (.production, true, "old", [21004, 21004], "P P'"),
            (.production, true, "old", [21004, 21007, 0], "P P' S'"),
            (.production, true, "old", [21007, 21004, 0], "P S S'"),
            (.production, true, "old", [21007, 21004, 21008], "P S S'"),
            (.production, true, "new", [21004], "P"),
            (.production, true, "", [21004], "P"),
            (.production, true, "old", [nil], "P"),
            (.production, true, "old", [21002], "P"),
            (.production, true, "old", [21010], "P"),
        ]

    @Test("Each answer leads to the right further question", arguments: tables)
    func asks(
        _ table: (askFirst: StoreEnvironment, sandbox: Bool, previous: String?, statuses: [Int?], asked: String)
    ) {
        var conversation = StoreRouting(
            AppStoreRequest(
                receipt: "AAAA", secret: "new", previousSecret: table.previous, askFirst: table.askFirst,
                sandboxAllowed: table.sandbox))
        var asked: [String] = []
        for (index, status) in table.statuses.enumerated() {
            asked.append(
                (conversation.environment == .production ? "P" : "S") + (conversation.usesPreviousSecret ? "'" : ""))
            #expect(conversation.password == (conversation.usesPreviousSecret ? table.previous : "new"))
            #expect(conversation.goesOn(after: status) == (index < table.statuses.count - 1), "after \(asked)")
        }
        #expect(asked.joined(separator: " ") == table.asked)
    }

    /// Whatever a store answers, three calls are the most.
    @Test("A conversation always ends")
    func itAlwaysEnds() {
        let statuses = [0, 21002, 21004, 21007, 21008]
        for first in statuses {
            for second in statuses {
                for third in statuses {
                    var conversation = StoreRouting(AppStoreRequest(receipt: "A", secret: "new", previousSecret: "old"))
                    let all = [first, second, third].allSatisfy { conversation.goesOn(after: $0) }
                    #expect(!all, "\(first) \(second) \(third)")
                }
            }
        }
    }

    @Test("A request prints no secret")
    func aRequestPrintsNoSecret() {
        let request = AppStoreRequest(receipt: "UkVDRUlQVA==", secret: "hush1", previousSecret: "hush2")
        var dumped = ""
        dump([request], to: &dumped)
        for text in ["\(request)", "\([request])", String(reflecting: Optional(request)), dumped] {
            #expect(!text.contains("hush") && !text.contains("UkVDRUlQVA"), "\(text)")
        }
    }
}
