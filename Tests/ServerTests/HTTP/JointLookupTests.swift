import Subscriptions
import Synchronization
import Testing

@testable import Ledger
@testable import Server

@Suite("Lookups at the same time are asked together")
struct JointLookupTests {
    private static let app = BundleID("com.example.app")

    private struct Broken: Error, Equatable {}

    /// A database whose every statement a test sees; the first one is answered only when the test says so.
    private final class Watched: Sendable {
        let asked = Mutex<[[String]]>([])
        let (gate, opener) = AsyncStream<Void>.makeStream()

        func ask(_ customers: [CustomerName]) async throws -> [[Entitlement]] {
            let names = customers.map(\.id.text)
            let isFirst = asked.withLock { asked in
                asked.append(names)
                return asked.count == 1
            }
            if isFirst { for await _ in gate { break } }
            if names.contains("bad") { throw Broken() }
            return names.map { [Entitlement(named: $0)] }
        }
    }

    /// Lets `names` ask while the lookup of "first" is under way. Returns each one's answer, nil for an error, and the
    /// statements.
    private func together(_ names: [String]) async -> (reported: [String: String?], asked: [[String]]) {
        let watched = Watched()
        let joint = JointLookup(by: watched.ask)
        let reported = await withTaskGroup(of: (String, String?).self) { group in
            func ask(_ name: String) {
                group.addTask {
                    (name, try? await joint.answer(about: CustomerName(AppCustomerID(name), of: Self.app)).first?.name)
                }
            }
            ask("first")
            while watched.asked.withLock(\.isEmpty) { await Task.yield() }
            for (place, name) in names.enumerated() {
                ask(name)
                while joint.waiting <= place { await Task.yield() }
            }
            watched.opener.yield()
            return await group.reduce(into: [String: String?]()) { $0[$1.0] = .some($1.1) }
        }
        return (reported, watched.asked.withLock(\.self))
    }

    @Test("The first goes at once and alone; all who wait go together, and each gets their own answer")
    func oneStatementForAll() async {
        let names = (0..<20).map { "c\($0)" }
        let (reported, asked) = await together(names)
        #expect(asked == [["first"], names])
        #expect(reported == Dictionary(uniqueKeysWithValues: (["first"] + names).map { ($0, $0) }))
    }

    @Test("A statement has a bounded number of questions")
    func bounded() async {
        let names = (0..<JointLookup<[Entitlement]>.questionsMax + 3).map { "c\($0)" }
        let (reported, asked) = await together(names)
        #expect(asked.map(\.count) == [1, JointLookup<[Entitlement]>.questionsMax, 3])
        #expect(reported.count == names.count + 1 && reported.allSatisfy { $0.key == $0.value })
    }

    @Test("A question that fails fails no other question")
    func oneBreaks() async {
        let (reported, asked) = await together(["a", "bad", "b"])
        #expect(reported == ["first": "first", "a": "a", "b": "b", "bad": nil])
        #expect(asked.prefix(2) == [["first"], ["a", "bad", "b"]])
        #expect(asked.dropFirst(2).map { $0.joined() }.sorted() == ["a", "b", "bad"])
    }

    @Test("After a failure, and after a rest, it goes on as before")
    func goesOn() async throws {
        let joint = JointLookup { customers in
            guard customers.first?.id.text != "bad" else { throw Broken() }
            return customers.map { [Entitlement(named: $0.id.text)] }
        }
        for _ in 0..<3 {
            await #expect(throws: Broken()) { try await joint.answer(about: CustomerName("bad", of: Self.app)) }
            let reported = try await joint.answer(about: CustomerName("kim", of: Self.app))
            #expect(reported.map(\.name) == ["kim"] && joint.waiting == 0)
        }
    }
}

extension Entitlement {
    fileprivate init(named name: String) {
        self.init(
            name: name, granted: true, until: nil, productID: "p", state: "active", reason: nil,
            environment: .production, basis: "verified", asOf: nil, checkedAt: nil, expiresAt: nil)
    }
}
