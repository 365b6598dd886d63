import Subscriptions
import Testing

@testable import Ledger

@Suite("An answer is remembered for as long as it holds")
struct RightsMemoryTests {
    static let ann = CustomerName("ann", of: "com.example.app")
    static let start = ContinuousClock.now
    static let noon = Instant(milliseconds: 1_000_000)

    static func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    static func rights(
        _ basis: [RightBasis] = [.customer(1), .subscription(7)], until: Instant? = nil
    ) -> Rights {
        Rights([], basis: basis, lastsUntil: until)
    }

    /// Three rights: the first comes from subscription 7, the second is a manual grant, the third comes from 8.
    static func given(isTied: Bool = false) -> Rights {
        Rights(
            [entitlement(), entitlement("by_hand"), entitlement()], from: [.subscription(7), nil, .subscription(8)],
            isTied: isTied,
            basis: [.customer(1), .subscription(7), .subscription(8)])
    }

    static func changes(
        _ extent: RightChanges.Extent = .these([]), checks: [RightCheck] = []
    ) -> RightChanges {
        RightChanges(look: RightLook(log: "log", snapshot: "1:1:"), time: noon, extent: extent, checks: checks)
    }

    /// A memory that has looked once and knows what ann may use.
    static func knowing(_ rights: Rights = rights()) -> RightsMemory {
        var memory = RightsMemory()
        memory.note(changes(.everything), lookingSince: memory.begin(at: start))
        memory.keep(rights, of: ann, readSince: memory.begin(at: start), until: start)
        return memory
    }

    private static func knows(
        _ memory: RightsMemory, _ customer: CustomerName = ann, at time: Instant = noon, after seconds: Int = 0
    ) -> Bool {
        var memory = memory
        return memory.rights(of: customer, at: time, askedAt: memory.begin(at: at(seconds))) != nil
    }

    static func note(_ extent: RightChanges.Extent, in memory: inout RightsMemory, after seconds: Int = 0) {
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
        memory.keep(Self.rights(), of: Self.ann, readSince: memory.begin(at: Self.start), until: Self.start)
        #expect(Self.knows(memory))
        Self.note(.everything, in: &memory)
        #expect(!Self.knows(memory))
    }

    @Test("It holds until time alone may change it")
    func time() {
        var memory = Self.knowing(Self.rights(until: Self.noon + Delay(milliseconds: 2)))
        #expect(Self.knows(memory, at: Self.noon + Delay(milliseconds: 1)))
        #expect(!Self.knows(memory, at: Self.noon + Delay(milliseconds: 2)))
        let isProbable = memory.probablyKnows(Self.ann, at: memory.begin(at: Self.start))
        #expect(isProbable)
    }

    @Test("What changes while it is read is not in it", arguments: [true, false])
    func changedMeanwhile(everything: Bool) {
        var memory = RightsMemory()
        Self.note(.everything, in: &memory)
        let mark = memory.begin(at: Self.start)
        Self.note(everything ? .everything : .these([.customer(1)]), in: &memory)
        memory.keep(Self.rights(), of: Self.ann, readSince: mark, until: Self.start)
        #expect(!Self.knows(memory))
        memory.keep(Self.rights(), of: Self.ann, readSince: memory.begin(at: Self.start), until: Self.start)
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
        memory.keep(
            Self.rights([.customer(9)]), of: bob, readSince: memory.begin(at: Self.at(seconds)), until: Self.at(seconds)
        )
        #expect(memory.count == 1, "what is over is removed when something is kept")
        // A read so slow that changes were forgotten meanwhile.
        let mark = memory.begin(at: Self.at(seconds))
        Self.note(.these([.customer(4)]), in: &memory, after: seconds)
        Self.note(.these((10...20).map { .customer($0) }), in: &memory, after: 3 * seconds)
        memory.keep(Self.rights([.customer(4)]), of: Self.ann, readSince: mark, until: Self.start)
        #expect(!Self.knows(memory, after: 3 * seconds))
    }

    @Test("Shortly after a look it answers without another one, and it is early time for the next")
    func shortlyAfter() {
        var memory = Self.knowing()
        func tells(after milliseconds: Int) -> Bool {
            memory.rights(of: Self.ann, at: Self.start + .milliseconds(milliseconds)) != nil
        }
        func wantsLook(after milliseconds: Int) -> Bool {
            memory.wantsLook(at: Self.start + .milliseconds(milliseconds))
        }
        #expect([0, 10, 11, 20, 21, 22].map(tells) == [true, true, true, true, false, false])
        #expect([0, 5, 6, 6, 11, 12, 13].map(wantsLook) == [false, false, true, false, false, true, false])
        Self.note(.these([]), in: &memory, after: 1)
        #expect([1_005, 1_006, 1_007].map(wantsLook) == [false, true, false])
        memory.forget()
        #expect(!tells(after: 1_012))
        memory = Self.knowing(Self.rights(until: Self.noon + Delay(milliseconds: 20)))
        #expect(!tells(after: 0), "time alone may change it before the answer")
        memory = RightsMemory()
        #expect(!tells(after: 0))
    }

    @Test("A change is kept until every reading from before its report is over, however late that is")
    func lateLook() {
        var memory = RightsMemory()
        Self.note(.everything, in: &memory)
        let look = memory.begin(at: Self.start)
        // Read later than the look began, but before what the look saw.
        memory.keep(Self.rights(), of: Self.ann, readSince: memory.begin(at: Self.at(5)), until: Self.at(5))
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
            memory.keep(Self.rights(), of: name(number), readSince: memory.begin(at: Self.start), until: Self.start)
        }
        #expect(memory.count == RightsMemory.answersMax)
        #expect(!Self.knows(memory))
        #expect(!Self.knows(memory, name(1)))
        #expect(Self.knows(memory, name(2)))
    }

    @Test("More changes than it can hold are a change of everything")
    func tooManyChanges() {
        var memory = Self.knowing()
        Self.note(.these((0...Int64(ReportedChanges.thingsMax)).map { .purchase($0) }), in: &memory)
        #expect(!Self.knows(memory))
    }

    /// A check of ann's subscription that came so many seconds after noon, by both clocks.
    static func check(after seconds: Int64, of subscription: Int64 = 7) -> RightCheck {
        let time = noon + .seconds(seconds)
        return RightCheck(thing: .subscription(subscription), asOf: time - .seconds(1), checkedAt: time)
    }

    private static func entitlement(_ basis: String = "verified") -> Entitlement {
        Entitlement(
            name: basis, granted: true, until: nil, productID: "monthly", state: "active", reason: nil,
            environment: .production, basis: basis, asOf: basis == "verified" ? noon : nil,
            checkedAt: basis == "verified" ? noon : nil, expiresAt: nil)
    }

    /// What ann's answer says of its clocks is this; nil where it is not known any more.
    private static func expect(
        _ clocks: [Instant?]?, in memory: inout RightsMemory, _ why: Comment? = nil,
        at place: SourceLocation = #_sourceLocation
    ) {
        let rights = memory.rights(of: ann, at: noon, askedAt: memory.begin(at: at(5)))
        let reported = rights?.entitlements.flatMap { [$0.asOf, $0.checkedAt] }
        #expect(reported == clocks, why, sourceLocation: place)
    }

    @Test("After an answer of Apple's that said the same it holds, with the clocks of that")
    func checked() {
        var memory = Self.knowing(Self.given())
        for second in [1, 2] as [Int64] {
            let reported = Self.changes(checks: [Self.check(after: second), Self.check(after: 9, of: 9)])
            memory.note(reported, lookingSince: memory.begin(at: Self.at(Int(second))))
            let clocks = [
                Self.noon + .seconds(second - 1), Self.noon + .seconds(second), nil, nil, Self.noon, Self.noon,
            ]
            Self.expect(clocks, in: &memory)
        }
        let both = Self.changes(checks: [Self.check(after: 3), Self.check(after: 4, of: 8)])
        memory.note(both, lookingSince: memory.begin(at: Self.at(3)))
        let seconds = [2, 3, nil, nil, 3, 4] as [Int64?]
        Self.expect(seconds.map { $0.map { Self.noon + .seconds($0) } }, in: &memory)
        memory.note(
            Self.changes(.these([.subscription(7)]), checks: [Self.check(after: 5)]),
            lookingSince: memory.begin(at: Self.at(4)))
        Self.expect(nil, in: &memory, "it changed too")
        memory = Self.knowing(Self.given())
        memory.note(Self.changes(.these([.subscription(7)])), lookingSince: memory.begin(at: Self.at(1)))
        memory.note(Self.changes(checks: [Self.check(after: 2)]), lookingSince: memory.begin(at: Self.at(2)))
        Self.expect(nil, in: &memory, "it changed before")
    }

    @Test("Where it is not sure that a check is newer, or what it makes of the answer, that is read again")
    func checkedUnsure() {
        let reported = Self.changes(checks: [Self.check(after: 1)])
        var memory = Self.knowing(Self.given(isTied: true))
        memory.note(reported, lookingSince: memory.begin(at: Self.at(1)))
        Self.expect(nil, in: &memory)
        // A look that began before the answer was read tells a check that the answer may have seen, or a later one.
        memory = Self.knowing()
        let (mark, look) = (memory.begin(at: Self.at(1)), memory.begin(at: Self.at(2)))
        memory.keep(Self.given(), of: Self.ann, readSince: mark, until: Self.at(3))
        memory.note(reported, lookingSince: look)
        Self.expect(nil, in: &memory)
        memory.keep(Self.given(), of: Self.ann, readSince: memory.begin(at: Self.at(3)), until: Self.at(4))
        Self.expect([Self.noon, Self.noon, nil, nil, Self.noon, Self.noon], in: &memory)
        // A look that began earlier ends later, and tells the same check, or an earlier one.
        for (seconds, clocks) in [(2, [1, 2, nil, nil, 0, 0]), (1, nil)] as [(Int64, [Int64?]?)] {
            memory = Self.knowing(Self.given())
            let (early, late) = (memory.begin(at: Self.at(1)), memory.begin(at: Self.at(2)))
            memory.note(Self.changes(checks: [Self.check(after: 2)]), lookingSince: late)
            memory.note(Self.changes(checks: [Self.check(after: seconds)]), lookingSince: early)
            Self.expect(clocks?.map { $0.map { Self.noon + .seconds($0) } }, in: &memory)
        }
        let twice = RightCheck.sorted([Self.check(after: 1), Self.check(after: 2, of: 8), Self.check(after: 2)])
        #expect(twice.once == [Self.check(after: 2, of: 8)] && twice.again == [.subscription(7)])
    }
}
