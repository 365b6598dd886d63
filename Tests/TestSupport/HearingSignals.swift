import Foundation

extension Process {
    /// Starts it so that it hears signals: the threads of Swift's pool block them all, and a child inherits that.
    package func runHearingSignals() throws {
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try run()
    }
}
