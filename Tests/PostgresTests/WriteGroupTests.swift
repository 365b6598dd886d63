import Postgres
import Synchronization
import Testing

@Suite("Requests that arrive together run as groups, and fail alone") struct WriteGroupTests {
    /// Work that doubles numbers and notes its groups. It fails for a group with a negative number.
    private final class Doubling: Sendable {
        private struct Negative: Error {}

        private let notes = Mutex<[[Int]]>([])
        var groups: [[Int]] { notes.withLock { $0 } }

        @Sendable func run(_ numbers: [Int]) async throws -> [Int] {
            notes.withLock { $0.append(numbers) }
            try await Task.sleep(for: .milliseconds(20))
            guard numbers.allSatisfy({ $0 >= 0 }) else { throw Negative() }
            return numbers.map { 2 * $0 }
        }
    }

    /// A value that many tasks change.
    private final class Noted<Value: Sendable>: Sendable {
        let value: Mutex<Value>

        init(_ value: Value) { self.value = Mutex(value) }
    }

    private func answers(
        to numbers: [Int], from groups: WriteGroups<Int, Int>, by work: Doubling
    ) async -> [Int: Int] {
        await withTaskGroup(of: (Int, Int?).self) { tasks in
            for number in numbers {
                tasks.addTask { (number, try? await groups.answer(number, by: work.run)) }
            }
            return await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    @Test("Each gets its own answer, and many share a group of bounded size")
    func shared() async {
        let (groups, work) = (WriteGroups<Int, Int>(requestsMax: 10, groupsMax: 2, waitingMax: 100), Doubling())
        let answers = await answers(to: Array(0..<100), from: groups, by: work)
        #expect(answers == Dictionary(uniqueKeysWithValues: (0..<100).map { ($0, 2 * $0) }))
        #expect(work.groups.count < 50 && work.groups.allSatisfy { (1...10).contains($0.count) })
        #expect(work.groups.flatMap { $0 }.sorted() == Array(0..<100))
    }

    @Test("A request that fails takes no other with it")
    func failing() async {
        let (groups, work) = (WriteGroups<Int, Int>(requestsMax: 50, groupsMax: 1, waitingMax: 100), Doubling())
        let answers = await answers(to: Array(-2..<40), from: groups, by: work)
        #expect(answers == Dictionary(uniqueKeysWithValues: (0..<40).map { ($0, 2 * $0) }))
        #expect(work.groups.contains([-1]) && work.groups.contains([-2]))
    }

    @Test("A connection that fails takes the whole group with it, once")
    func lost() async {
        let database = Database(DatabaseConfiguration(connectionString: "host=/nonexistent-socket-folder")) {
            print($0)
        }
        await database.close()
        let groups = WriteGroups<Int, Int>(requestsMax: 50, groupsMax: 1, waitingMax: 100)
        let tried = Noted<[Int]>([])
        let failures = await withTaskGroup(of: DatabaseError?.self) { tasks in
            for number in 0..<40 {
                tasks.addTask {
                    await databaseError {
                        _ = try await groups.answer(number) { numbers in
                            tried.value.withLock { $0 += numbers }
                            try await Task.sleep(for: .milliseconds(20))
                            _ = try await database.ask("SELECT 1")
                            return numbers
                        }
                    }
                }
            }
            return await tasks.reduce(into: []) { $0.append($1?.kind) }
        }
        #expect(failures == Array(repeating: .closed, count: 40))
        #expect(tried.value.withLock { $0.sorted() } == Array(0..<40))
    }

    @Test("A full queue refuses")
    func full() async {
        let groups = WriteGroups<Int, Int>(requestsMax: 1, groupsMax: 1, waitingMax: 3)
        let isOpen = Noted(false)
        let (answered, refused) = await withTaskGroup(of: Bool.self) { tasks in
            for number in 0..<20 {
                tasks.addTask {
                    let answer = try? await groups.answer(number) { numbers in
                        while !isOpen.value.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
                        return numbers
                    }
                    return answer != nil
                }
            }
            // One runs and three wait; nothing is answered before the others are refused.
            return await tasks.reduce(into: (0, 0)) { counts, isAnswered in
                if isAnswered { counts.0 += 1 } else { counts.1 += 1 }
                if counts.1 == 16 { isOpen.value.withLock { $0 = true } }
            }
        }
        #expect(answered + refused == 20 && (3...4).contains(answered))
    }
}
