# Trains the environment of my_arm.py. Run in this folder: bash train_arm.sh
gibo train my_arm:Arm-v0 --budget 40 --out runs/arm
gibo evaluate runs/arm --episodes 5 --allow-module
gibo status runs/arm/trial-00
