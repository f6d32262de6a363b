# Tunes the motor of pid.py, first by hand. Run beside pid.py: bash pid.sh

# 1. What is tuned.
cat > motor.toml << END
minimize = true
budget = 60

[parameters.kp]
kind = "log"
lower = 1
upper = 100
start = 10

[parameters.ki]
kind = "log"
lower = 0.1
upper = 100
start = 5

[parameters.kd]
kind = "log"
lower = 0.01
upper = 10
start = 0.2
END
gibo init runs/motor --parameters motor.toml

# 2. The first experiments.
gibo ask runs/motor
gibo tell runs/motor 0 1008.07
gibo undo runs/motor
gibo tell runs/motor 0 108.07
gibo status runs/motor

# 3. All others.
python -m pid runs/motor

# 4. What came out.
gibo best runs/motor
gibo report runs/motor
