/* A mass on a spring with a damper, released at 1 m: a co-simulation FMU with what fmpy calls; the other functions are there. */
#include "fmi2Functions.h"
#include <stdlib.h>

enum { STIFFNESS, DAMPING, POSITION, SPEED, COUNT };

const char* fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char* fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions* functions, fmi2Boolean visible, fmi2Boolean logging) {
    double* s = calloc(COUNT, sizeof(double));
    if (s) s[STIFFNESS] = s[POSITION] = 1.0;
    return s;
}

void fmi2FreeInstance(fmi2Component c) { free(c); }
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) { return fmi2OK; }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean stopDefined, fmi2Real stop) { return fmi2OK; }
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[]) {
    for (size_t i = 0; i < n; i++) value[i] = ((double*)c)[vr[i]];
    return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[]) {
    for (size_t i = 0; i < n; i++) ((double*)c)[vr[i]] = value[i];
    return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real at, fmi2Real step, fmi2Boolean noSet) {
    double* s = c;
    for (int i = 0; i < 10; i++) {
        s[SPEED] -= step / 10 * (s[STIFFNESS] * s[POSITION] + s[DAMPING] * s[SPEED]);
        s[POSITION] += step / 10 * s[SPEED];
    }
    return fmi2OK;
}

/* What fmpy looks for and this model does not have. */
#define NONE(name) __attribute__((alias("none"))) fmi2##name##TYPE fmi2##name;
fmi2Status none(void) { return fmi2Error; }
NONE(Reset) NONE(GetInteger) NONE(GetBoolean) NONE(GetString) NONE(SetInteger) NONE(SetBoolean) NONE(SetString)
NONE(GetFMUstate) NONE(SetFMUstate) NONE(FreeFMUstate) NONE(SerializedFMUstateSize) NONE(SerializeFMUstate)
NONE(DeSerializeFMUstate) NONE(GetDirectionalDerivative) NONE(SetRealInputDerivatives) NONE(GetRealOutputDerivatives)
NONE(CancelStep) NONE(GetStatus) NONE(GetRealStatus) NONE(GetIntegerStatus) NONE(GetBooleanStatus)
NONE(GetStringStatus)
