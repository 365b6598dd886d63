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
        memory.endRefresh(of: due, at: Memory.at(seconds))
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

    @Test("An answer is refreshed when it changed, and only then")
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

    @Test("A check moves clocks, which takes no reading, unless they decide the answer", arguments: [false, true])
    func checked(isTied: Bool) {
        var memory = Memory.knowing(Memory.given(isTied: isTied))
        memory.note(Memory.changes(checks: [Memory.check(after: 1)]), lookingSince: memory.begin(at: Memory.at(1)))
        #expect(Self.refreshed(&memory, after: 1) == (isTied ? [Self.ann] : []))
    }

    @Test("An answer is read again only while callers ask for it")
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

    @Test("Before it is too old it is read again, and holds until then; if no caller wants it, it is forgotten")
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

    private static func name(_ number: Int) -> CustomerName { CustomerName("c\(number)", of: "com.example.app") }

    private static func thing(_ number: Int) -> RightBasis { .customer(Int64(number)) }

    /// A memory that knows customers, each by a thing of their own.
    private static func knowing(_ numbers: ClosedRange<Int>) -> RightsMemory {
        var memory = RightsMemory()
        Memory.note(.everything, in: &memory)
        for number in numbers {
            memory.keep(
                Rights([], isTied: false, basis: [thing(number)]), of: name(number),
                readSince: memory.begin(at: Memory.start), until: Memory.start)
        }
        return memory
    }

    @Test("One refresh at a time reads a bounded number, and then rests as long as it worked, a second at most")
    func dutyCycle() {
        let numbers = 1...RightsMemory.refreshesMax + 1
        var memory = Self.knowing(numbers)
        Memory.note(.these(numbers.map(Self.thing)), in: &memory)
        let due = memory.beginRefresh(at: Memory.at(1))
        #expect(due.count == RightsMemory.refreshesMax)
        #expect(memory.beginRefresh(at: Memory.at(2)).isEmpty, "one is under way")
        memory.endRefresh(of: [], at: Memory.at(4))
        #expect(memory.beginRefresh(at: Memory.at(4)).isEmpty, "it rests")
        #expect(memory.beginRefresh(at: Memory.at(5)).count == 1)
    }

    @Test("What failed to be read, or changed while it was read, is read once more")
    func again() {
        var memory = Memory.knowing()
        Memory.note(.these([.customer(1)]), in: &memory, after: 1)
        #expect(Self.refreshed(&memory, after: 1) == [Self.ann])
        #expect(Self.refreshed(&memory, after: 2) == [Self.ann], "it failed")
        Memory.note(.these([.customer(1)]), in: &memory, after: 3)
        let (due, mark) = (memory.beginRefresh(at: Memory.at(3)), memory.begin(at: Memory.at(3)))
        Memory.note(.these([.customer(1)]), in: &memory, after: 3)
        memory.keep(Memory.rights(), of: Self.ann, readSince: mark, until: Memory.at(3), asRefresh: true)
        memory.endRefresh(of: due, at: Memory.at(3))
        #expect(Self.refreshed(&memory, after: 4) == [Self.ann])
    }

    @Test("What was read later stays when a read ends that began earlier")
    func late() {
        var memory = Memory.knowing()
        let early = memory.begin(at: Memory.at(1))
        Memory.note(.these([.customer(1)]), in: &memory, after: 2)
        Self.keep(in: &memory, after: 2)
        memory.keep(Memory.rights(), of: Self.ann, readSince: early, until: Memory.at(3))
        #expect(Self.ask(&memory, after: 3) != nil)
    }

    @Test("When everything has changed, what is asked for is read, and no more")
    func everything() {
        var memory = Memory.knowing()
        Memory.note(.everything, in: &memory, after: 1)
        #expect(Self.refreshed(&memory, after: 1).isEmpty)
    }

    @Test("Checks that move clocks alone do not stand in the way of a change")
    func checksInFront() {
        let numbers = 1...5_000
        var memory = Self.knowing(numbers)
        let checks = numbers.map { RightCheck(thing: Self.thing($0), asOf: Memory.noon, checkedAt: Memory.noon) }
        memory.note(Memory.changes(checks: checks), lookingSince: memory.begin(at: Memory.at(1)))
        Memory.note(.these([Self.thing(5_000)]), in: &memory, after: 1)
        #expect(Self.refreshed(&memory, after: 1) == [Self.name(5_000)])
    }

    @Test("Answers that grow old are read again, also behind answers that no caller wants")
    func manyAge() {
        let (most, seconds) = (RightsMemory.refreshesMax, RightsMemory.refreshSeconds)
        var memory = Self.knowing(1...2 * most)
        for number in most + 1...2 * most {
            _ = memory.rights(of: Self.name(number), at: Memory.noon, askedAt: memory.begin(at: Memory.at(seconds - 1)))
        }
        let wanted = Set((most + 1...2 * most).map(Self.name))
        #expect(Set(Self.refreshed(&memory, after: seconds)) == wanted)
        #expect(memory.count == most)
        #expect(Set(Self.refreshed(&memory, after: seconds + 1)) == wanted, "it failed")
    }
}
