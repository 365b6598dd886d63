import Subscriptions
import Testing

@testable import Ledger

@Suite("What was asked about lately is read again before the next question")
struct RightsRefreshTests {
    private typealias Memory = RightsMemoryTests
    private static let ann = Memory.ann

    /// Whom a refresh after so many seconds reads again; it is over at once.
    private static func refreshed(_ memory: inout RightsMemory, after seconds: Int) -> [CustomerName] {
        let due = memory.beginRefresh(at: Memory.at(seconds))
        memory.endRefresh(at: Memory.at(seconds))
        return due
    }

    private static func ask(_ memory: inout RightsMemory, after seconds: Int) -> Rights? {
        memory.rights(of: ann, at: Memory.noon, askedAt: memory.begin(at: Memory.at(seconds)))
    }

    private static func keep(
        _ rights: Rights = Memory.rights(), in memory: inout RightsMemory, after seconds: Int, asRefresh: Bool = true
    ) {
        memory.keep(
            rights, of: ann, readSince: memory.begin(at: Memory.at(seconds)), until: Memory.at(seconds),
            asRefresh: asRefresh)
    }

    @Test("When it changed, and only then")
    func changed() {
        var memory = Memory.knowing()
        #expect(Self.refreshed(&memory, after: 1).isEmpty)
        Memory.note(.these([.customer(2), .subscription(8)]), in: &memory, after: 1)
        #expect(Self.refreshed(&memory, after: 1).isEmpty)
        Memory.note(.these([.customer(1), .subscription(7)]), in: &memory, after: 2)
        #expect(Self.refreshed(&memory, after: 2) == [Self.ann])
        Self.keep(in: &memory, after: 2)
        #expect(Self.refreshed(&memory, after: 2).isEmpty)
        #expect(Self.ask(&memory, after: 2) != nil)
    }

    @Test("A check moves clocks, which takes no reading, unless they decide what is told", arguments: [false, true])
    func checked(isTied: Bool) {
        var memory = Memory.knowing(Memory.given(isTied: isTied))
        memory.note(Memory.changes(checks: [Memory.check(after: 1)]), lookingSince: memory.begin(at: Memory.at(1)))
        #expect(Self.refreshed(&memory, after: 1) == (isTied ? [Self.ann] : []))
    }

    @Test("Nobody's answer is read again for ever: only while it is asked for")
    func unwanted() {
        let seconds = RightsMemory.wantedSeconds
        var memory = Memory.knowing()
        Memory.note(.these([.customer(1)]), in: &memory, after: seconds)
        #expect(Self.refreshed(&memory, after: seconds).isEmpty)
        memory = Memory.knowing()
        Memory.note(.these([.customer(1)]), in: &memory, after: seconds - 1)
        #expect(Self.refreshed(&memory, after: seconds - 1) == [Self.ann])
        Self.keep(in: &memory, after: seconds - 1)
        Memory.note(.these([.customer(1)]), in: &memory, after: seconds)
        #expect(Self.refreshed(&memory, after: seconds).isEmpty, "a refresh is no question")
    }

    @Test("Before it is too old it is read again, and holds until then; if nobody wants it, it is forgotten")
    func age() {
        let (seconds, old) = (RightsMemory.refreshSeconds, RightsMemory.answerSeconds)
        var memory = Memory.knowing()
        #expect(Self.ask(&memory, after: seconds - 1) != nil)
        #expect(Self.refreshed(&memory, after: seconds - 1).isEmpty)
        #expect(Self.refreshed(&memory, after: seconds) == [Self.ann])
        #expect(Self.ask(&memory, after: old - 1) != nil)
        #expect(Self.refreshed(&memory, after: seconds + 1) == [Self.ann], "the refresh failed")
        Self.keep(in: &memory, after: seconds + 1)
        #expect(Self.refreshed(&memory, after: seconds + 1).isEmpty)
        #expect(Self.ask(&memory, after: old) != nil)
        memory = Memory.knowing()
        #expect(Self.refreshed(&memory, after: seconds).isEmpty)
        #expect(memory.count == 0)
    }

    @Test("What cannot be kept is not read again")
    func unkept() {
        var memory = Memory.knowing()
        Memory.note(.these([.customer(1)]), in: &memory, after: 1)
        #expect(Self.refreshed(&memory, after: 1) == [Self.ann])
        Self.keep(Memory.rights([]), in: &memory, after: 1)
        #expect(memory.count == 0)
        Self.keep(in: &memory, after: 1)
        #expect(memory.count == 0, "it was forgotten while it was read again")
        Memory.note(.these([.customer(1)]), in: &memory, after: 2)
        #expect(Self.refreshed(&memory, after: 2).isEmpty)
    }

    @Test("One refresh at a time, of so many, and as much rest as work")
    func halfTime() {
        var memory = Memory.knowing()
        let many = Int64(RightsMemory.refreshesMax) + 1
        for number in 1...many {
            memory.keep(
                Memory.rights([.customer(number)]), of: CustomerName("c\(number)", of: "com.example.app"),
                readSince: memory.begin(at: Memory.start), until: Memory.start)
        }
        Memory.note(.these((1...many).map { .customer($0) }), in: &memory)
        #expect(memory.beginRefresh(at: Memory.at(1)).count == RightsMemory.refreshesMax)
        #expect(memory.beginRefresh(at: Memory.at(2)).isEmpty, "one is under way")
        memory.endRefresh(at: Memory.at(3))
        #expect(memory.beginRefresh(at: Memory.at(4)).isEmpty, "it rests")
        #expect(memory.beginRefresh(at: Memory.at(5)).count == 1)
    }

    @Test("What is touched waits in a line that does not grow without end")
    func bounded() {
        var touched = TouchedAnswers()
        let most = Int64(TouchedAnswers.waitingMax)
        for number in 0...most {
            touched.add(CustomerName("c\(number)", of: "com.example.app"), restingOn: [.purchase(number)])
        }
        touched.note(Memory.changes(.these((0...most).map { .purchase($0) })))
        #expect(touched.removeFirst()?.id.text == "c1")
        touched.remove(CustomerName("c2", of: "com.example.app"), restingOn: [.purchase(2)])
        touched.remove(CustomerName("other", of: "com.example.app"), restingOn: [.purchase(3)])
        touched.note(Memory.changes(.these([.purchase(2), .purchase(3)])))
        var last: CustomerName?
        var count = 0
        while let next = touched.removeFirst() { (last, count) = (next, count + 1) }
        #expect(last?.id.text == "c3" && count == Int(most))
    }
}
