import Testing

@testable import Tracking

@Suite("A worker updates the summaries without delaying other work")
struct SummaryPacingTests {
    private let behind = SummaryStep(subscriptions: 2_000, isBehind: true)
    private let upToDate = SummaryStep(subscriptions: 200, isBehind: false)

    @Test("A worker that starts takes a small step; large ones follow only when that finds more")
    func startsSmall() {
        var pace = SummaryPacing()
        pace.begin()
        #expect(!pace.isBehind && !pace.findsWritten)
        pace.record(behind, workSeconds: 0)
        #expect(pace.isBehind)
        pace.record(upToDate, workSeconds: 0)
        #expect(!pace.isBehind)
        pace.record(behind, workSeconds: 0)
        pace.record(nil, workSeconds: 0)
        #expect(!pace.isBehind)
    }

    @Test("It rests as long as it worked while it is behind, and long when it is not")
    func rests() {
        var pace = SummaryPacing()
        pace.record(behind, workSeconds: 3)
        #expect(pace.restSeconds == 3)
        pace.record(behind, workSeconds: 0.01)
        #expect(pace.restSeconds == SummaryPacing.behindRestSecondsMin)
        pace.record(upToDate, workSeconds: 3)
        #expect(pace.restSeconds == SummaryPacing.upToDateRestSeconds)
    }

    @Test("Beside checks that take all there is it works a tenth of the time, and only while they do")
    func givesWay() {
        var pace = SummaryPacing()
        pace.record(behind, workSeconds: 3, besideFullChecks: true)
        #expect(pace.restSeconds == 27)
        pace.record(behind, workSeconds: 3, besideFullChecks: false)
        #expect(pace.restSeconds == 3)
        pace.record(upToDate, workSeconds: 3, besideFullChecks: true)
        #expect(pace.restSeconds == SummaryPacing.upToDateRestSeconds)
    }

    @Test("Everything is looked through once in a number of steps, and never while it is behind")
    func looksThrough() {
        var pace = SummaryPacing()
        let looks = (1...120).filter { _ in
            pace.begin()
            return pace.findsWritten
        }
        #expect(looks == [60, 120])
        pace.record(behind, workSeconds: 0)
        for _ in 0..<60 { pace.begin() }
        #expect(!pace.findsWritten)
    }
}
