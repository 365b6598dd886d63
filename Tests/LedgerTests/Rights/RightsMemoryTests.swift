import Subscriptions
import Testing

@testable import Ledger

@Suite("An answer is remembered for as long as it holds")
struct RightsMemoryTests {
    private static let ann = CustomerName("ann", of: "com.example.app")
    private static let start = ContinuousClock.now
    private static let noon = Instant(milliseconds: 1_000_000)

    private static func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    private static func rights(
        _ basis: [RightBasis] = [.customer(1), .subscription(7)], until: Instant? = nil
    ) -> Rights {
        Rights([], basis: basis, lastsUntil: until)
    }

    private static func changes(_ extent: RightChanges.Extent = .these([])) -> RightChanges {
        RightChanges(look: RightLook(log: "log", snapshot: "1:1:"), time: noon, extent: extent)
    }

    /// A memory that has looked once and knows what ann may use.
    private static func knowing(_ rights: Rights = rights()) -> RightsMemory {
        var memory = RightsMemory()
        memory.note(changes(.everything), lookingSince: memory.begin(at: start))
        memory.keep(rights, of: ann, readSince: memory.begin(at: start))
        return memory
    }

    private static func knows(
        _ memory: RightsMemory, _ customer: CustomerName = ann, at time: Instant = noon, after seconds: Int = 0
    ) -> Bool {
        memory.rights(of: customer, at: time, askedAt: memory.begin(at: at(seconds))) != nil
    }

    private static func note(_ extent: RightChanges.Extent, in memory: inout RightsMemory, after seconds: Int = 0) {
        memory.note(changes(extent), lookingSince: memory.begin(at: at(seconds)))
    }

    @Test("It holds until something it rests on changes, whatever else does")
    func changes() {
        var memory = Self.knowing()
        #expect(!Self.knows(memory, CustomerName("bob", of: "com.example.app")))
        #expect(!Self.knows(memory, CustomerName("ann", of: "com.example.other")))
        Self.note(.these([.customer(7), .subscription(1), .purchase(7)]), in: &memory)
        #expect(Self.knows(memory))
        Self.note(.these([.subscription(7)]), in: &memory)
        #expect(!Self.knows(memory))
        memory.keep(Self.rights(), of: Self.ann, readSince: memory.begin(at: Self.start))
        #expect(Self.knows(memory))
        Self.note(.everything, in: &memory)
        #expect(!Self.knows(memory))
    }

    @Test("It holds until time alone may change it")
    func time() {
        let memory = Self.knowing(Self.rights(until: Self.noon + Delay(milliseconds: 2)))
        #expect(Self.knows(memory, at: Self.noon + Delay(milliseconds: 1)))
        #expect(!Self.knows(memory, at: Self.noon + Delay(milliseconds: 2)))
        #expect(memory.probablyKnows(Self.ann, at: memory.begin(at: Self.start)))
    }

    @Test("What changes while it is read is not in it", arguments: [true, false])
    func changedMeanwhile(everything: Bool) {
        var memory = RightsMemory()
        Self.note(.everything, in: &memory)
        let mark = memory.begin(at: Self.start)
        Self.note(everything ? .everything : .these([.customer(1)]), in: &memory)
        memory.keep(Self.rights(), of: Self.ann, readSince: mark)
        #expect(!Self.knows(memory))
        memory.keep(Self.rights(), of: Self.ann, readSince: memory.begin(at: Self.start))
        #expect(Self.knows(memory))
    }

    @Test("It is kept for a while, and a change is never forgotten before what it concerns")
    func age() {
        let seconds = RightsMemory.answerSeconds
        var memory = Self.knowing()
        #expect(Self.knows(memory, after: seconds - 1))
        #expect(!Self.knows(memory, after: seconds))
        Self.note(.these([.customer(1)]), in: &memory)
        Self.note(.these([.customer(2), .customer(3)]), in: &memory, after: seconds - 1)
        #expect(!Self.knows(memory, after: seconds - 1))
        let bob = CustomerName("bob", of: "com.example.app")
        memory.keep(Self.rights([.customer(9)]), of: bob, readSince: memory.begin(at: Self.at(seconds)))
        #expect(memory.count == 1, "what is over is removed when something is kept")
        // A read so slow that changes were forgotten meanwhile.
        let mark = memory.begin(at: Self.at(seconds))
        Self.note(.these([.customer(4)]), in: &memory, after: seconds)
        Self.note(.these((10...20).map { .customer($0) }), in: &memory, after: 3 * seconds)
        memory.keep(Self.rights([.customer(4)]), of: Self.ann, readSince: mark)
        #expect(!Self.knows(memory, after: 3 * seconds))
    }

    @Test("Shortly after a look it is told without another one, and half-way one caller is sent to look")
    func shortlyAfter() {
        var memory = Self.knowing()
        func tells(after milliseconds: Int) -> Bool {
            memory.rights(of: Self.ann, at: Self.start + .milliseconds(milliseconds)) != nil
        }
        let asked = [0, 10, 11, 11, 20, 21, 22]
        #expect(asked.map(tells) == [true, true, false, true, true, false, false])
        Self.note(.these([]), in: &memory, after: 1)
        #expect([1_010, 1_011, 1_012].map(tells) == [true, false, true])
        memory.forget()
        #expect(!tells(after: 1_012))
        memory = Self.knowing(Self.rights(until: Self.noon + Delay(milliseconds: 20)))
        #expect(!tells(after: 0), "time alone may change it before it is told")
        memory = RightsMemory()
        #expect(!tells(after: 0))
    }

    @Test("A change is kept until everything is over that was read before it was told, however late that was")
    func lateLook() {
        var memory = RightsMemory()
        Self.note(.everything, in: &memory)
        let look = memory.begin(at: Self.start)
        // Read later than the look began, but before what the look saw.
        memory.keep(Self.rights(), of: Self.ann, readSince: memory.begin(at: Self.at(5)))
        memory.note(Self.changes(.these([.customer(1)])), lookingSince: look)
        let seconds = RightsMemory.answerSeconds
        Self.note(.these([.customer(2), .customer(3)]), in: &memory, after: seconds + 1)
        #expect(!Self.knows(memory, after: seconds + 1))
    }

    @Test("It keeps a number of answers at most, the latest, and none that rests on too much")
    func limits() {
        var memory = Self.knowing(Self.rights((0...Int64(RightsMemory.basisMax)).map { .purchase($0) }))
        #expect(!Self.knows(memory))
        memory = Self.knowing()
        func name(_ number: Int) -> CustomerName { CustomerName("c\(number)", of: "com.example.app") }
        for number in 1...RightsMemory.answersMax + 1 {
            memory.keep(Self.rights(), of: name(number), readSince: memory.begin(at: Self.start))
        }
        #expect(memory.count == RightsMemory.answersMax)
        #expect(!Self.knows(memory))
        #expect(!Self.knows(memory, name(1)))
        #expect(Self.knows(memory, name(2)))
    }

    @Test("More changes than it can hold are a change of everything")
    func tooManyChanges() {
        var memory = Self.knowing()
        Self.note(.these((0...Int64(RightsMemory.changesMax)).map { .purchase($0) }), in: &memory)
        #expect(!Self.knows(memory))
    }
}
