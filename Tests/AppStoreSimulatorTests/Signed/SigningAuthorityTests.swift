import Crypto
import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("A store signs with one authority") struct SigningAuthorityTests {
    @Test("A kept authority signs with the same key and the same chain")
    func kept() throws {
        let authority = try SigningAuthority()
        let again = try SigningAuthority(stored: authority.stored)
        #expect(again.certificates == authority.certificates && again.rootPEM == authority.rootPEM)
        #expect(again.header == authority.header && again.stored == authority.stored)
        #expect(try SigningAuthority().rootPEM != authority.rootPEM)
    }

    @Test("A text that is no stored authority is refused with the reason")
    func unreadable() throws {
        let authority = try SigningAuthority()
        let foreign = try SigningAuthority()
        #expect(throws: SigningAuthority.Unreadable.self) { try SigningAuthority(stored: "nothing") }
        #expect(throws: SigningAuthority.Unreadable.self) { try SigningAuthority(stored: authority.rootPEM) }
        let mixed = foreign.keyPEM + authority.stored.dropFirst(authority.keyPEM.count)
        #expect(throws: SigningAuthority.Unreadable.self) { try SigningAuthority(stored: mixed) }
    }

    @Test("A store serves its root, which is the same for the app beside it")
    func served() throws {
        let hand = ManualClock()
        let signatory = Signatory()
        let options = SimulatorOptions(seed: 3)
        let beside = Simulator(
            options.calendarApp("com.example.journal", customers: 1, at: ManualClock.start), clock: hand.clock,
            signatory: signatory)
        let store = Simulator(options, clock: hand.clock, signatory: signatory, beside: beside)
        let roots = ["", "?app=com.example.journal"].map { query in
            let reply = store.respond(to: SimulatorRequest(method: "GET", path: "/simulator/signing-root\(query)"))
            return String(decoding: reply.body, as: UTF8.self)
        }
        #expect(roots[0].hasPrefix("-----BEGIN CERTIFICATE-----") && roots[0] == roots[1])
        #expect(try roots[0] == store.signingAuthority().rootPEM)
    }
}
